/* Switching between stacks.
 *
 * void mtl_switch(void **save, void *target)
 *     Saves the callee-saved registers on the current stack and the stack pointer in *save, then
 *     continues at `target`, a stack pointer that an earlier mtl_switch saved or that
 *     mtl_stack_prepare made.
 * mtl_resume
 *     The second half of mtl_switch. The signal handler jumps here, with the target in the second
 *     argument register, to abandon a kernel that faulted.
 * void mtl_call_on(void *stack_pointer, void (*function)(void *), void *argument)
 *     Calls function(argument) on another stack, of which the bytes below `stack_pointer`, a multiple
 *     of 16, are free.
 * mtl_stack_start
 *     Where a prepared stack begins: calls the function in one callee-saved register with the
 *     argument in another. The function never returns.
 *
 * Floating-point control registers are not switched: all threads of a kernel share one setting,
 * made by mtl_float_mode_enter. The switch ends in a return, not an indirect jump: most switches go
 * between lanes that wait in the same call, so the processor's return predictor is right about
 * them, and about the returns that follow.
 */
#ifdef __APPLE__
#define SYMBOL(name) _##name
#define HIDDEN(name) .private_extern SYMBOL(name)
#define KIND(name)
#else
#define SYMBOL(name) name
#define HIDDEN(name) .hidden SYMBOL(name)
#ifdef __aarch64__
#define KIND(name) .type SYMBOL(name), %function
#else
#define KIND(name) .type SYMBOL(name), @function
#endif
#endif
#define FUNCTION(name) .globl SYMBOL(name); HIDDEN(name); KIND(name)

    .text
#if defined(__x86_64__)

    .p2align 4
FUNCTION(mtl_switch)
FUNCTION(mtl_resume)
SYMBOL(mtl_switch):
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
SYMBOL(mtl_resume):
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    retq

    .p2align 4
FUNCTION(mtl_call_on)
SYMBOL(mtl_call_on):
    pushq %rbp
    movq %rsp, %rbp
    movq %rdi, %rsp
    movq %rdx, %rdi
    callq *%rsi
    movq %rbp, %rsp
    popq %rbp
    retq

    .p2align 4
FUNCTION(mtl_stack_start)
SYMBOL(mtl_stack_start):
    .cfi_startproc
    .cfi_undefined rip /* the outermost frame */
    movq %r13, %rdi
    callq *%r12
    ud2
    .cfi_endproc

#elif defined(__aarch64__)

    .p2align 4
FUNCTION(mtl_switch)
FUNCTION(mtl_resume)
SYMBOL(mtl_switch):
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
SYMBOL(mtl_resume):
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret

    .p2align 4
FUNCTION(mtl_call_on)
SYMBOL(mtl_call_on):
    stp x29, x30, [sp, #-16]!
    mov x29, sp
    mov sp, x0
    mov x0, x2
    blr x1
    mov sp, x29
    ldp x29, x30, [sp], #16
    ret

    .p2align 4
FUNCTION(mtl_stack_start)
SYMBOL(mtl_stack_start):
    .cfi_startproc
    .cfi_undefined x30 /* the outermost frame */
    mov x0, x20
    blr x19
    brk #1
    .cfi_endproc

#else
#error "no context switch for this processor"
#endif

#ifdef __linux__
    .section .note.GNU-stack, "", %progbits
#endif
