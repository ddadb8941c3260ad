#include "layouts.h"

struct layout mtl_layouts[CLASSES];

MTL_EXPORT void mtl_define_class(int class, PyObject* type, const uint64_t* offsets, int count) {
  mtl_layouts[class].type = held(type);
  memcpy(mtl_layouts[class].offsets, offsets, 8 * (size_t)count);
}
