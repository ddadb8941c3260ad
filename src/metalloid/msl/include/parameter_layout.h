// What a parameter of a kernel is, as numbers that the compiled module carries: the types as clang
// sees them, members of structs included. metalloid.msl.layout reads them.
#pragma once

#include "metal_stdlib.h"

namespace metalloid {

enum class parameter_form : unsigned { value, pointer, reference, texture, sampler, absent, tensor };
enum class element_kind : unsigned { opaque, boolean, signed_integer, unsigned_integer, floating, brain };

template <class T>
constexpr element_kind kind_of() {
  if constexpr (__is_enum(T)) return kind_of<__underlying_type(T)>();
  else if constexpr (__is_same(T, bool)) return element_kind::boolean;
  else if constexpr (__is_same(T, bfloat)) return element_kind::brain;
  else if constexpr (__is_floating_point(T)) return element_kind::floating;
  else if constexpr (!__is_integral(T)) return element_kind::opaque;
  else if constexpr (T(-1) < T(0)) return element_kind::signed_integer;
  else return element_kind::unsigned_integer;
}

// An element type taken apart: the scalar it is made of and how many there are.
template <class T>
struct element {
  using scalar = T;
  static constexpr unsigned lanes = 1, columns = 1;
};
template <class T, int N>
struct element<metal::vec<T, N>> {
  using scalar = T;
  static constexpr unsigned lanes = N, columns = 1;
};
template <class T, int N>
struct element<metal::packed_vec<T, N>> : element<metal::vec<T, N>> {};
template <class T, int C, int R>
struct element<metal::matrix<T, C, R>> {
  using scalar = T;
  static constexpr unsigned lanes = R, columns = C;
};
template <class T>
struct element<metal::atomic<T>> : element<T> {};

// An array, however written and however deep, as what it is an array of and how many there are;
// 0 for what is no array.
template <class T>
struct array_of {
  using type = T;
  static constexpr unsigned count = 0;
};
template <class T, decltype(sizeof(0)) N>
struct array_of<T[N]> : array_of<unqualified<T>> {
  static constexpr unsigned count = N * (array_of<unqualified<T>>::count ?: 1);
};
template <class T>
struct array_of<T[]> : array_of<unqualified<T>> {};
template <class T, decltype(sizeof(0)) N>
struct array_of<metal::array<T, N>> : array_of<T[N]> {};

template <class T>
struct space_of {
  static constexpr unsigned code = 0;
};
template <class T>
struct space_of<__attribute__((opencl_global_device)) T> {
  static constexpr unsigned code = 1;
};
template <class T>
struct space_of<__attribute__((opencl_global)) T> {
  static constexpr unsigned code = 2;
};
template <class T>
struct space_of<__attribute__((opencl_local)) T> {
  static constexpr unsigned code = 3;
};

// ---- the table ----------------------------------------------------------------------------------
// One row of the table, in the order in which Python reads it. A row may be followed by rows of
// members: of a struct, or of the struct that a pointer points to.
struct layout_row {
  parameter_form form;
  unsigned space, read_only;
  unsigned offset;   // in the struct it is a member of
  unsigned count;    // elements of an array; 0 for what is no array
  // Of a texture: kind, whether it is a depth texture, and access, a byte each. Of a tensor: rank.
  unsigned texture;
  unsigned id;  // of a member: its [[id(n)]], plus 1; 0 if the text says none
  // Of the value or of what a pointer points to; of a texture, its element type.
  element_kind kind;
  unsigned scalar_bytes, lanes, columns, bytes, alignment;
  unsigned members;  // rows of direct members that follow
};

// Writes numbers, or only counts them while it has no room to write to.
struct layout_writer {
  unsigned* storage;
  unsigned length;

  constexpr void put(unsigned number) {
    if (storage) storage[length] = number;
    ++length;
  }
  constexpr void put(const char* name) {
    unsigned size = 0;
    while (name[size]) ++size;
    put(size);
    for (unsigned i = 0; i < size; ++i) put(unsigned(name[i]));
  }
  // Returns the index of the number of members, which is known later.
  constexpr unsigned put(const char* name, const layout_row& row) {
    put(name);
    for (unsigned number :
         {unsigned(row.form), row.space, row.read_only, row.offset, row.count, row.texture, row.id,
          unsigned(row.kind), row.scalar_bytes, row.lanes, row.columns, row.bytes, row.alignment,
          row.members})
      put(number);
    return length - 1;
  }
};

// Stands for a parameter that a function constant leaves out.
struct absent_parameter {};

template <class T>
constexpr void describe_element(layout_row& row) {
  if constexpr (__is_void(T) || __is_function(T)) {
    row.kind = element_kind::opaque;
    row.scalar_bytes = row.lanes = row.columns = row.bytes = row.alignment = 1;
  } else {
    using parts = element<unqualified<typename array_of<T>::type>>;
    using scalar = unqualified<typename parts::scalar>;
    row.kind = kind_of<scalar>();
    row.scalar_bytes = sizeof(scalar);
    row.lanes = parts::lanes;
    row.columns = parts::columns;
    row.bytes = sizeof(T);
    row.alignment = alignof(T);
  }
}

template <class T>
constexpr bool is_resource() {
  return __is_pointer(T) || __is_base_of(texture_handle, T) || __is_same(T, metal::sampler);
}

// Dimensions of a tensor that a launch binds (tensor_entry.h); 0 for what is none.
template <class T>
inline constexpr unsigned tensor_rank = 0;

// The members of a struct come from the struct itself: the lowering gives each a function that
// calls `member` for each of them (msl/records.py).
template <class T, class... Outer>
struct member_writer {
  using self = T;
  layout_writer& writer;
  unsigned count;

  template <class Member>
  constexpr void member(unsigned offset, const char* name, unsigned id = 0);
};

template <class T>
constexpr auto has_members(int)
    -> decltype(T::metalloid_members(*(member_writer<T>*)nullptr), true) {
  return true;
}
template <class T>
constexpr bool has_members(long) {
  return false;
}

// The rows of what T holds; their number. A struct that points to itself is opened once.
template <class T, class... Outer>
constexpr unsigned put_members(layout_writer& writer) {
  using innermost = unqualified<typename array_of<T>::type>;
  member_writer<T, Outer...> members{writer, 0};
  if constexpr (is_resource<innermost>()) {
    members.template member<T>(0, "");  // no struct, but what stands there has to be bound as well
  } else if constexpr (__is_class(T) && !(__is_same(T, Outer) || ...)) {
    if constexpr (has_members<T>(0)) T::metalloid_members(members);
  }
  return members.count;
}

// The rows of a parameter or member: its own, and those of its members.
template <class P, class... Outer>
constexpr void put_layout(layout_writer& writer, unsigned offset, const char* name,
                          unsigned id = 0) {
  using array = array_of<unqualified<P>>;
  using T = unqualified<typename array::type>;
  layout_row row = {};
  row.offset = offset;
  row.id = id;
  row.count = array::count;
  unsigned index = 0, members = 0;
  if constexpr (__is_pointer(T) || __is_reference(T)) {
    using pointee = metal::remove_pointer_t<metal::remove_reference_t<T>>;
    row.form = __is_pointer(T) ? parameter_form::pointer : parameter_form::reference;
    row.space = space_of<metal::remove_cv_t<pointee>>::code;
    row.read_only = __is_const(pointee) || row.space == 2;
    describe_element<unqualified<pointee>>(row);
    index = writer.put(name, row);
    members = put_members<unqualified<pointee>, Outer...>(writer);
  } else if constexpr (__is_base_of(texture_handle, T)) {
    row.form = parameter_form::texture;
    row.read_only =
        T::access_mode == metal::access::sample || T::access_mode == metal::access::read;
    row.texture = unsigned(T::kind) | unsigned(T::is_depth) << 8 | unsigned(T::access_mode) << 16;
    describe_element<typename T::element>(row);
    index = writer.put(name, row);
  } else if constexpr (__is_same(T, absent_parameter)) {
    row.form = parameter_form::absent;
    describe_element<T>(row);
    writer.put(name, row);
    return;
  } else if constexpr (tensor_rank<T> > 0) {
    using element = typename T::element_type;
    row.form = parameter_form::tensor;
    row.space = space_of<metal::remove_cv_t<element>>::code;
    row.read_only = __is_const(element) || row.space == 2;
    row.texture = tensor_rank<T>;
    describe_element<typename T::value_type>(row);
    index = writer.put(name, row);
  } else if constexpr (__is_same(T, metal::sampler)) {
    row.form = parameter_form::sampler;
    row.read_only = 1;
    describe_element<ulong>(row);
    index = writer.put(name, row);
  } else {
    row.form = parameter_form::value;
    describe_element<T>(row);
    index = writer.put(name, row);
    members = put_members<T, Outer...>(writer);
  }
  if (writer.storage) writer.storage[index] = members;
}

template <class T, class... Outer>
template <class Member>
constexpr void member_writer<T, Outer...>::member(unsigned offset, const char* name,
                                               unsigned id) {
  put_layout<Member, T, Outer...>(writer, offset, name, id);
  ++count;
}

// Ends in a 1: clang would write zeros at the end of a table as something else than numbers.
template <int length>
struct layout_table {
  unsigned numbers[length + 1];
};

template <class... Parameters>
constexpr unsigned layout_length() {
  layout_writer writer{nullptr, 0};
  (put_layout<Parameters>(writer, 0, ""), ...);
  return writer.length;
}

template <class... Parameters>
constexpr auto layouts_of() {
  layout_table<layout_length<Parameters...>()> table = {};
  layout_writer writer{table.numbers, 0};
  (put_layout<Parameters>(writer, 0, ""), ...);
  writer.put(1u);
  return table;
}

}  // namespace metalloid
