/* Signals that kernels raise end the launch, not the process.
 *
 * The handler runs on an alternate stack, since the kernel's own may have overflowed. When the
 * thread was in a kernel, it records what happened and rewrites the interrupted registers so that
 * returning from the handler continues in mtl_resume, as if the kernel had switched back to the
 * scheduler. All other signals go to the handler that was installed before this one.
 */
#include "fibre.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ucontext.h>
#include <unistd.h>

enum { SIGNAL_STACK = 128 << 10 }; /* the saved registers alone take 11 KiB with AMX */

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
enum { SIGNALS = sizeof signals / sizeof *signals };

static struct sigaction previous[SIGNALS];

/* ---- machine state ---- */

static uint64_t instruction_pointer(const ucontext_t *state) {
#if defined(__linux__) && defined(__x86_64__)
    return (uint64_t)state->uc_mcontext.gregs[REG_RIP];
#elif defined(__linux__) && defined(__aarch64__)
    return state->uc_mcontext.pc;
#elif defined(__APPLE__) && defined(__x86_64__)
    return state->uc_mcontext->__ss.__rip;
#elif defined(__APPLE__) && defined(__aarch64__)
    return (uint64_t)__darwin_arm_thread_state64_get_pc(state->uc_mcontext->__ss);
#endif
}

static uintptr_t stack_pointer(const ucontext_t *state) {
#if defined(__linux__) && defined(__x86_64__)
    return (uintptr_t)state->uc_mcontext.gregs[REG_RSP];
#elif defined(__linux__) && defined(__aarch64__)
    return (uintptr_t)state->uc_mcontext.sp;
#elif defined(__APPLE__) && defined(__x86_64__)
    return (uintptr_t)state->uc_mcontext->__ss.__rsp;
#elif defined(__APPLE__) && defined(__aarch64__)
    return (uintptr_t)__darwin_arm_thread_state64_get_sp(state->uc_mcontext->__ss);
#endif
}

static void continue_at_scheduler(ucontext_t *state, void *stack_pointer) {
#if defined(__linux__) && defined(__x86_64__)
    const greg_t direction_flag = 0x400; /* clear in all compiled code */
    state->uc_mcontext.gregs[REG_EFL] &= ~direction_flag;
    state->uc_mcontext.gregs[REG_RSP] = (greg_t)stack_pointer;
    state->uc_mcontext.gregs[REG_RSI] = (greg_t)stack_pointer;
    state->uc_mcontext.gregs[REG_RIP] = (greg_t)mtl_resume;
#elif defined(__linux__) && defined(__aarch64__)
    state->uc_mcontext.sp = (uintptr_t)stack_pointer;
    state->uc_mcontext.regs[1] = (uintptr_t)stack_pointer;
    state->uc_mcontext.pc = (uintptr_t)mtl_resume;
#elif defined(__APPLE__) && defined(__x86_64__)
    state->uc_mcontext->__ss.__rsp = (uintptr_t)stack_pointer;
    state->uc_mcontext->__ss.__rsi = (uintptr_t)stack_pointer;
    state->uc_mcontext->__ss.__rip = (uintptr_t)mtl_resume;
#elif defined(__APPLE__) && defined(__aarch64__)
    __darwin_arm_thread_state64_set_sp(state->uc_mcontext->__ss, stack_pointer);
    state->uc_mcontext->__ss.__x[1] = (uintptr_t)stack_pointer;
    __darwin_arm_thread_state64_set_pc_fptr(state->uc_mcontext->__ss, (void *)mtl_resume);
#endif
}

/* ---- the handler ---- */

static void chain(int signal, siginfo_t *info, void *state) {
    int index = 0;
    while (signals[index] != signal) index++;
    const struct sigaction *handler = &previous[index];
    if (handler->sa_flags & SA_SIGINFO) {
        handler->sa_sigaction(signal, info, state);
    } else if (handler->sa_handler != SIG_DFL && handler->sa_handler != SIG_IGN) {
        handler->sa_handler(signal);
    } else if (handler->sa_handler == SIG_DFL || info->si_code > 0) {
        /* Let the system act: a fault comes again by itself, a signal that was sent does not. */
        sigaction(signal, handler, NULL);
        if (info->si_code <= 0) raise(signal);
    }
}

/* A handler installed later, such as Python's faulthandler, raises the signal again for this one. */
static bool caused_here(const siginfo_t *info) {
    return info->si_code > 0 || info->si_pid == getpid();
}

static void handle(int signal, siginfo_t *info, void *machine_state) {
    mtl_context *context = mtl_current;
    if (!context || !context->in_kernel || !caused_here(info)) {
        chain(signal, info, machine_state);
        return;
    }
    context->in_kernel = false;
    ucontext_t *state = machine_state;
    mtl_stack stack = context->running ? context->running->stack : context->kernel_stack;
    bool has_address = info->si_code > 0 && (signal == SIGSEGV || signal == SIGBUS);
    uintptr_t address = has_address ? (uintptr_t)info->si_addr : 0;
    uintptr_t below_stack = (uintptr_t)stack.low - address;
    context->fault = (mtl_fault){
        .signal = signal,
        .stack_overflow = has_address && below_stack - 1 < MTL_STACK_GUARD,
        .address = address,
        .code = instruction_pointer(state),
    };
    continue_at_scheduler(state, context->scheduler);
}

/* ---- the watchdog's visits ---- */

static struct sigaction previous_visit;

typedef struct visit {
    mtl_context *context;
    const sigset_t *mask; /* of the kernel */
    bool goes_on;
} visit;

/* On the stack of the thread itself, below the scheduler: Python needs room, and looks where it is.
 * Other signals are blocked, except while they have a stack of their own: the usual one holds the
 * state of the kernel, and the system would start at its top again. */
static void attend_on_host_stack(void *argument) {
    visit *visit = argument;
    mtl_context *context = visit->context;
    stack_t nested = {.ss_sp = context->nested_signal_stack, .ss_size = SIGNAL_STACK}, usual;
    sigset_t blocked;
    bool is_replaced = nested.ss_sp && sigaltstack(&nested, &usual) == 0;
    if (is_replaced) pthread_sigmask(SIG_SETMASK, visit->mask, &blocked);
    visit->goes_on = mtl_attend(context);
    if (!is_replaced) return;
    pthread_sigmask(SIG_SETMASK, &blocked, NULL);
    sigaltstack(&usual, NULL);
}

static bool attend(mtl_context *context, const sigset_t *mask) {
    if (!mtl_host_is_here()) return mtl_attend(context);
    enum { RED_ZONE = 128 };
    uintptr_t free_below = ((uintptr_t)context->scheduler - RED_ZONE) & ~(uintptr_t)15;
    visit visit = {.context = context, .mask = mask};
    mtl_call_on((void *)free_below, attend_on_host_stack, &visit);
    return visit.goes_on;
}

/* Not if it is in the handler of another signal. */
static bool is_in_kernel(const mtl_context *context, const ucontext_t *state) {
    const mtl_stack *stack = context->running ? &context->running->stack : &context->kernel_stack;
    return context->in_kernel && stack_pointer(state) - (uintptr_t)stack->low < stack->size;
}

/* The kernel was interrupted between any two instructions, holds no lock, and owns nothing that would leak if
 * it is abandoned. */
static void handle_visit(int signal, siginfo_t *info, void *machine_state) {
    mtl_context *context = mtl_current;
    if (!context || !atomic_load(&context->working)) {
        const struct sigaction *before = &previous_visit;
        if (before->sa_flags & SA_SIGINFO) {
            before->sa_sigaction(signal, info, machine_state);
        } else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN) {
            before->sa_handler(signal);
        }
        return;
    }
    ucontext_t *state = machine_state;
    if (!is_in_kernel(context, state) || context->holds_lock) {
        context->is_visited = true;
        return;
    }
    int error = errno;
    context->in_kernel = false;
    if (attend(context, &state->uc_sigmask)) {
        context->in_kernel = true;
    } else {
        context->fault = (mtl_fault){.signal = signal};
        continue_at_scheduler(state, context->scheduler);
    }
    errno = error;
}

__attribute__((constructor)) static void install_handlers(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], &action, &previous[i]);
    action.sa_sigaction = handle_visit;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigfillset(&action.sa_mask);
    for (int i = 0; i < SIGNALS; i++) sigdelset(&action.sa_mask, signals[i]);
    sigaction(MTL_VISIT, &action, &previous_visit);
}

/* ---- alternate stacks ---- */

void *mtl_signal_stack_allocate(void) { return malloc(SIGNAL_STACK); }

/* Gives the calling thread an alternate stack unless it has one. Returns what to remove later. */
void *mtl_signal_stack_install(void) {
    stack_t present;
    if (sigaltstack(NULL, &present) != 0 || !(present.ss_flags & SS_DISABLE)) return NULL;
    void *memory = mtl_signal_stack_allocate();
    if (!memory) return NULL;
    stack_t stack = {.ss_sp = memory, .ss_size = SIGNAL_STACK};
    if (sigaltstack(&stack, NULL) == 0) return memory;
    free(memory);
    return NULL;
}

void mtl_signal_stack_remove(void *memory) {
    stack_t present, none = {.ss_flags = SS_DISABLE};
    if (memory && sigaltstack(NULL, &present) == 0 && present.ss_sp == memory) {
        sigaltstack(&none, NULL);
    }
    free(memory);
}
