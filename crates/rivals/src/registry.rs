//! Registry of the comparison locks: one row for each, from which every list of them is made.

/// Hands the rows of a family to the macro `then`, with `more` before them:
/// `locks!(FAMILY => then [more])`.
///
/// The families are the folders: `classic`, `numa`, `cst`, `stock`. The columns:
///
/// | column | meaning | family |
/// |---|---|---|
/// | name | what the commands call the lock | all |
/// | file and type | below the family's folder; the type's first parameter is the platform | all |
/// | bytes | size on Linux, in the form that is compared | all |
/// | memory | beside the lock: `NOTHING`, or `NODES` for waiters and owners | `classic` |
/// | a waiter | how it waits, in a few words | `classic` |
/// | order | in which order waiters are served | `classic` |
/// | model | what may happen in its models, then its other parameters there | `classic` |
///
/// The freedom of the platform in a model: `ANY` allows spurious wakes, timeouts and shortened
/// spins; `PLAIN` allows none of these, for locks whose models would not terminate. The parameters
/// make a model small: without a spin, for instance, all waiters sleep.
///
/// A row of any family is in the simulator and in replays, can be validated, and has its size and
/// exclusion tested. A row of `classic` also gets models and their test, and is in `bench locks`,
/// in `antiphon locks`, and in the tests on the stub and on simulated machines. The models of the
/// other families are written by hand, because each lock needs its own sockets and parameters.
///
/// ```
/// macro_rules! names {
///     (classic: $($name:literal: $file:ident::$lock:ident, $bytes:literal $(, $more:tt)*;)+) => {
///         [$($name),+]
///     };
/// }
/// assert!(antiphon_rivals::locks!(classic => names).contains(&"ticket"));
/// ```
#[macro_export]
macro_rules! locks {
    (classic => $($then:ident)::+ $([$($more:tt)*])*) => {
        $($then)::+! {
            $([$($more)*])*
            classic:
            "tas": tas::Tas, 1, NOTHING, "spins", "free for all", (ANY);
            "ttas": ttas::Ttas, 1, NOTHING, "spins, backing off", "free for all", (ANY, 0);
            "ticket": ticket::Ticket, 4, NOTHING, "spins", "first come, first served", (ANY);
            "mcs": mcs::Mcs, 8, NODES, "spins", "first come, first served", (PLAIN);
            "mcs-stp": mcs_stp::McsStp, 8, NODES, "spins, then sleeps", "first come, first served",
                (PLAIN, 0);
            "clh": clh::Clh, 8, NODES, "spins", "first come, first served", (PLAIN);
            "futex": futex::Futex, 8, NODES, "sleeps", "free for all", (PLAIN);
        }
    };
    (numa => $($then:ident)::+ $([$($more:tt)*])*) => {
        $($then)::+! {
            $([$($more)*])*
            numa:
            "hbo": hbo::Hbo, 2;
            "hclh": hclh::Hclh, 576;
            "cohort-bo-mcs": cohort::CBoMcs, 576;
            "cohort-tkt-mcs": cohort::CTktMcs, 576;
            "malthusian": malthusian::Malthusian, 16;
            "hmcs": hmcs::Hmcs, 576;
            "ahmcs": ahmcs::Ahmcs, 1088;
            "cna": cna::Cna, 8;
        }
    };
    (cst => $($then:ident)::+ $([$($more:tt)*])*) => {
        $($then)::+! {
            $([$($more)*])*
            cst:
            "cst-mutex": mutex::CstMutex, 16;
        }
    };
    (stock => $($then:ident)::+ $([$($more:tt)*])*) => {
        $($then)::+! {
            $([$($more)*])*
            stock:
            "qspinlock": qspinlock::QSpinLock, 4;
            "linux-mutex": mutex::LinuxMutex, 20;
        }
    };
}

/// Re-exports the types of a family's rows: `locks!(FAMILY => shows)`.
macro_rules! shows {
    (
        $family:ident:
        $($name:literal: $file:ident::$lock:ident, $bytes:literal $(, $more:tt)*;)+
    ) => {
        $(pub use $file::$lock;)+
    };
}
pub(crate) use shows;
