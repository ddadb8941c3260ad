// What stands between a device and a kernel: one function per kernel that fetches the arguments and
// ids its parameters ask for and calls it, and a table that describes the parameters' types.
//
// The signature is read from the user's tokens only as far as attributes go; the types are C++'s
// own business: `entry` takes them from the kernel's address.
#pragma once

#include "parameter_layout.h"

namespace metalloid {

// Where a parameter's value comes from. The names are Metal's attributes.
enum class input {
  absent,
  memory,
  threadgroup_memory,
  dispatch_quadgroups_per_threadgroup,
  dispatch_simdgroups_per_threadgroup,
  dispatch_threads_per_threadgroup,
  grid_origin,
  grid_size,
  quadgroup_index_in_threadgroup,
  quadgroups_per_threadgroup,
  simdgroup_index_in_threadgroup,
  simdgroups_per_threadgroup,
  thread_execution_width,
  thread_index_in_quadgroup,
  thread_index_in_simdgroup,
  thread_index_in_threadgroup,
  thread_position_in_grid,
  thread_position_in_threadgroup,
  threadgroup_position_in_grid,
  threadgroups_per_grid,
  threads_per_grid,
  threads_per_simdgroup,
  threads_per_threadgroup,
};

// Where the value of a parameter with [[function_constant(condition)]] comes from. A constant may
// be computed from others, floats among them, which is no constant expression in C++: clang folds
// it where __builtin_constant_p is asked first.
#define METALLOID_INPUT_IF(condition, source) \
  (__builtin_constant_p(condition) ? ((condition) ? source : metalloid::input::absent) : source)

constexpr uint simdgroup_width = 32;
constexpr uint quadgroup_width = 4;

METALLOID_INLINE uint divide_up(uint a, uint b) { return (a + b - 1) / b; }
METALLOID_INLINE uint volume(metal::uint3 v) { return v.x * v.y * v.z; }

// The ids of one thread. Each target has its own code to fill it; what a kernel does not ask for is
// never computed.
struct thread_ids {
  metal::uint3 position_in_threadgroup;
  metal::uint3 position_in_grid;
  uint index;                    // in the threadgroup, x fastest
  metal::uint3 group;            // position of the threadgroup in the grid
  metal::uint3 group_size;       // threads of this threadgroup: fewer at the grid's edge
  metal::uint3 dispatched_size;  // threads of a threadgroup as asked for
  metal::uint3 grid;             // in threads
  metal::uint3 groups;           // in threadgroups

  template <input source>
  METALLOID_INLINE auto get() const {
    if constexpr (source == input::thread_position_in_grid) return position_in_grid;
    else if constexpr (source == input::thread_position_in_threadgroup) return position_in_threadgroup;
    else if constexpr (source == input::threadgroup_position_in_grid) return group;
    else if constexpr (source == input::threads_per_threadgroup) return group_size;
    else if constexpr (source == input::dispatch_threads_per_threadgroup) return dispatched_size;
    else if constexpr (source == input::threads_per_grid || source == input::grid_size) return grid;
    else if constexpr (source == input::threadgroups_per_grid) return groups;
    else if constexpr (source == input::grid_origin) return metal::uint3(0u);
    else if constexpr (source == input::thread_index_in_threadgroup) return index;
    else if constexpr (source == input::thread_index_in_simdgroup) return index % simdgroup_width;
    else if constexpr (source == input::thread_index_in_quadgroup) return index % quadgroup_width;
    else if constexpr (source == input::simdgroup_index_in_threadgroup)
      return index / simdgroup_width;
    else if constexpr (source == input::quadgroup_index_in_threadgroup)
      return index / quadgroup_width;
    else if constexpr (source == input::simdgroups_per_threadgroup)
      return divide_up(volume(group_size), simdgroup_width);
    else if constexpr (source == input::quadgroups_per_threadgroup)
      return divide_up(volume(group_size), quadgroup_width);
    else if constexpr (source == input::dispatch_simdgroups_per_threadgroup)
      return divide_up(volume(dispatched_size), simdgroup_width);
    else if constexpr (source == input::dispatch_quadgroups_per_threadgroup)
      return divide_up(volume(dispatched_size), quadgroup_width);
    else
      return simdgroup_width;  // threads_per_simdgroup, thread_execution_width
  }
};

// An id as the parameter's own type: any integer, scalar or vector of 2 or 3.
template <class Id>
struct id_as {
  static METALLOID_INLINE Id from(uint v) { return Id(v); }
  static METALLOID_INLINE Id from(metal::uint3 v) { return Id(v.x); }
};
template <class T>
struct id_as<metal::vec<T, 2>> {
  static METALLOID_INLINE metal::vec<T, 2> from(metal::uint3 v) { return {T(v.x), T(v.y)}; }
};
template <class T>
struct id_as<metal::vec<T, 3>> {
  static METALLOID_INLINE metal::vec<T, 3> from(metal::uint3 v) { return {T(v.x), T(v.y), T(v.z)}; }
};

// A parameter that a launch fills, from its word: the address of memory or of a texture's
// descriptor, or a sampler itself. An array of such is the address of their words.
template <class P>
struct memory_as {
  static_assert(__is_base_of(texture_handle, P),
                "a kernel parameter without an id attribute must be a pointer or reference to "
                "device, constant or threadgroup memory, a texture or a sampler");
  static METALLOID_INLINE P from(void* word) {
    P texture;
    texture.word = (ulong)word;
    return texture;
  }
};
template <>
struct memory_as<metal::sampler> {
  static METALLOID_INLINE metal::sampler from(void* word) {
    return metal::sampler(from_storage(), (ulong)word);
  }
};
template <class T, size_t N>
struct memory_as<metal::array<T, N>> {
  static_assert(is_resource<T>(), "an array parameter holds pointers, textures or samplers");
  static METALLOID_INLINE metal::array<T, N> from(void* words) {
    return *(constant metal::array<T, N>*)words;
  }
};
template <class T>
struct memory_as<T*> {
  static METALLOID_INLINE T* from(void* address) { return (T*)address; }
};
template <class T>
struct memory_as<T&> {
  static METALLOID_INLINE T& from(void* address) { return *(T*)address; }
};

// ---- the call -------------------------------------------------------------------------------------

template <auto kernel, input... inputs>
struct entry {
  static_assert(sizeof...(inputs) < 0, "a kernel function must return void");
};

template <class... Parameters, void (*kernel)(Parameters...), input... inputs>
struct entry<kernel, inputs...> {
  static_assert(sizeof...(Parameters) == sizeof...(inputs));
  // Here, so that a parameter which no launch can fill is refused where no code is made, too.
  static_assert(
      (sizeof(memory_as<metal::conditional_t<inputs == input::memory, Parameters, void*>>) && ... && true));
  static constexpr int parameter_count = sizeof...(Parameters);
  static constexpr auto layouts = layouts_of<
      metal::conditional_t<inputs == input::absent, absent_parameter, Parameters>...>();

  template <class P, input source>
  static METALLOID_INLINE P fetch(const thread_ids& ids, void* word, char* threadgroup_memory) {
    if constexpr (source == input::absent) return memory_as<P>::from(nullptr);
    else if constexpr (source == input::memory) return memory_as<P>::from(word);
    else if constexpr (source == input::threadgroup_memory)
      return memory_as<P>::from(threadgroup_memory + (unsigned long)word);
    else return id_as<P>::from(ids.template get<source>());
  }

  template <int... positions>
  struct sequence {};
  template <int count, int... positions>
  struct count_to : count_to<count - 1, count - 1, positions...> {};
  template <int... positions>
  struct count_to<0, positions...> {
    using type = sequence<positions...>;
  };

  template <int... positions>
  static METALLOID_INLINE void call(const thread_ids& ids, void* const* words,
                                    char* threadgroup_memory, sequence<positions...>) {
    [[clang::always_inline]] kernel(
        fetch<Parameters, inputs>(ids, words[positions], threadgroup_memory)...);
  }

  static METALLOID_INLINE void call(const thread_ids& ids, void* const* words,
                                    char* threadgroup_memory) {
    call(ids, words, threadgroup_memory, typename count_to<parameter_count>::type());
  }
};

}  // namespace metalloid
