// The arguments of indirect commands, which kernels write for the host's next command.
//
// Each struct tells its members, as those of a user's text do (msl/records.py), so that a launch
// takes it by name.
#pragma once

#include "metal_types.h"

#define METALLOID_MEMBER(name) \
  m.template member<decltype(self::name)>(__builtin_offsetof(self, name), #name);
#define METALLOID_MEMBERS(...) \
  template <class M> \
  static constexpr void metalloid_members(M& m) { \
    using self = typename M::self; \
    __VA_ARGS__ \
  }

struct MTLDispatchThreadgroupsIndirectArguments {
  uint threadgroupsPerGrid[3];
  METALLOID_MEMBERS(METALLOID_MEMBER(threadgroupsPerGrid))
};
struct MTLDispatchThreadsIndirectArguments {
  uint threadsPerGrid[3], threadsPerThreadgroup[3];
  METALLOID_MEMBERS(METALLOID_MEMBER(threadsPerGrid) METALLOID_MEMBER(threadsPerThreadgroup))
};
struct MTLStageInRegionIndirectArguments {
  uint stageInOrigin[3], stageInSize[3];
  METALLOID_MEMBERS(METALLOID_MEMBER(stageInOrigin) METALLOID_MEMBER(stageInSize))
};
struct MTLDrawPrimitivesIndirectArguments {
  uint vertexCount, instanceCount, vertexStart, baseInstance;
  METALLOID_MEMBERS(METALLOID_MEMBER(vertexCount) METALLOID_MEMBER(instanceCount)
                        METALLOID_MEMBER(vertexStart) METALLOID_MEMBER(baseInstance))
};
struct MTLDrawIndexedPrimitivesIndirectArguments {
  uint indexCount, instanceCount, indexStart;
  int baseVertex;
  uint baseInstance;
  METALLOID_MEMBERS(METALLOID_MEMBER(indexCount) METALLOID_MEMBER(instanceCount)
                        METALLOID_MEMBER(indexStart) METALLOID_MEMBER(baseVertex)
                            METALLOID_MEMBER(baseInstance))
};
struct MTLDrawPatchIndirectArguments {
  uint patchCount, instanceCount, patchStart, baseInstance;
  METALLOID_MEMBERS(METALLOID_MEMBER(patchCount) METALLOID_MEMBER(instanceCount)
                        METALLOID_MEMBER(patchStart) METALLOID_MEMBER(baseInstance))
};

#undef METALLOID_MEMBERS
#undef METALLOID_MEMBER
