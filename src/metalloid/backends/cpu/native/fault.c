/* Signals that kernels raise end the launch, not the process.
 *
 * The handler runs on an alternate stack, since the kernel's own may have overflowed. When the
 * thread was in a kernel, it records what happened and rewrites the interrupted registers so that
 * returning from the handler continues in mtl_resume, as if the kernel had switched back to the
 * scheduler. All other signals go to the handler that was installed before this one.
 */
#include "fibre.h"

#include <pthread.h>
#include <signal.h>
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

/* A handler installed after ours, such as Python's faulthandler, raises the signal again for us. */
static bool caused_here(const siginfo_t *info) {
    return info->si_code > 0 || info->si_pid == getpid();
}

static void handle(int signal, siginfo_t *info, void *machine_state) {
    mtl_context *context = mtl_current;
    if (!context || !context->in_kernel || !caused_here(info)) {
        chain(signal, info, machine_state);
        return;
    }
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

__attribute__((constructor)) static void install_handlers(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], &action, &previous[i]);
}

/* ---- alternate stacks ---- */

/* Gives the calling thread an alternate stack unless it has one. Returns what to remove later. */
void *mtl_signal_stack_install(void) {
    stack_t present;
    if (sigaltstack(NULL, &present) != 0 || !(present.ss_flags & SS_DISABLE)) return NULL;
    void *memory = malloc(SIGNAL_STACK);
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
