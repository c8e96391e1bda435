//! Programs that the compiler must refuse, in which a borrow would outlive its variable through a
//! type of this crate that runs or keeps a caller's values. For documentation tests only.
//!
//! Each refused program stands below its twin, which differs in the place of a line or a word, and
//! which compiles and runs: so the refusal is due to that difference, and not to a slip. The error
//! codes are those of current compilers; a stable compiler only checks that there is an error.

mod waits;

/// A task of a scope may borrow only values that outlive the scope.
///
/// ```
/// # let pool = antiphon::pool::Pool::new(1)?;
/// let words = ["one", "two"];
/// let said = &words;
/// let length = pool.scope(|scope| {
///     scope.spawn(move || assert_eq!(said.len(), 2));
///     words.len()
/// });
/// assert_eq!(length, 2);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// A variable that ends with the body of the scope does not live long enough.
///
/// ```compile_fail,E0597
/// # let pool = antiphon::pool::Pool::new(1)?;
/// let length = pool.scope(|scope| {
///     let words = ["one", "two"];
///     let said = &words;
///     scope.spawn(move || assert_eq!(said.len(), 2));
///     words.len()
/// });
/// assert_eq!(length, 2);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Nor is it enough that the borrowed variable belongs to another task of the scope.
///
/// ```compile_fail,E0373
/// # let pool = antiphon::pool::Pool::new(1)?;
/// pool.scope(|scope| {
///     scope.spawn(|| {
///         let words = ["one", "two"];
///         scope.spawn(|| assert_eq!(words.len(), 2));
///     });
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
struct TasksOfAScope;

/// Only the body of a scope and its tasks can use the scope.
///
/// ```
/// # let pool = antiphon::pool::Pool::new(1)?;
/// let mut kept = None;
/// pool.scope(|scope| scope.spawn(|| kept = Some(5)));
/// assert_eq!(kept, Some(5));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// The scope can't be kept for later.
///
/// ```compile_fail,E0521
/// # let pool = antiphon::pool::Pool::new(1)?;
/// let mut kept = None;
/// pool.scope(|scope| kept = Some(scope));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Nor can an outer scope be used instead: it may spawn no task that borrows data of the inner
/// scope.
///
/// ```compile_fail,E0597
/// # let pool = antiphon::pool::Pool::new(1)?;
/// pool.scope(|outer| {
///     let words = ["one", "two"];
///     let said = &words;
///     pool.scope(|_| outer.spawn(move || assert_eq!(said.len(), 2)));
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
struct ScopesThatAreKept;

/// No other code may use a variable that a task writes to before the scope ends.
///
/// ```
/// # let pool = antiphon::pool::Pool::new(1)?;
/// let (mut one, mut other) = (0, 0);
/// pool.scope(|scope| {
///     scope.spawn(|| one += 1);
///     scope.spawn(|| other += 1);
/// });
/// one += 1;
/// assert_eq!((one, other), (2, 1));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// ```compile_fail,E0499
/// # let pool = antiphon::pool::Pool::new(1)?;
/// let (mut one, mut other) = (0, 0);
/// pool.scope(|scope| {
///     scope.spawn(|| one += 1);
///     scope.spawn(|| one += 1);
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// ```compile_fail,E0506
/// # let pool = antiphon::pool::Pool::new(1)?;
/// let (mut one, mut other) = (0, 0);
/// pool.scope(|scope| {
///     scope.spawn(|| one += 1);
///     one = 1;
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
struct WhatATaskWrites;

/// A task of a scope may run on another thread, so its closure must be `Send`.
///
/// ```
/// # let pool = antiphon::pool::Pool::new(1)?;
/// let counted = std::sync::Arc::new(5);
/// pool.scope(|scope| scope.spawn(|| assert_eq!(*counted.clone(), 5)));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// ```compile_fail,E0277
/// # let pool = antiphon::pool::Pool::new(1)?;
/// let counted = std::rc::Rc::new(5);
/// pool.scope(|scope| scope.spawn(|| assert_eq!(*counted.clone(), 5)));
/// # Ok::<(), std::io::Error>(())
/// ```
struct WhatIsOfAThread;

/// A handle may be dropped or forgotten, and its task continues: so the task must borrow nothing,
/// and return no borrow.
///
/// ```
/// # let pool = antiphon::pool::Pool::new(1)?;
/// let words = ["one", "two"];
/// let handle = pool.spawn(move || words.len());
/// assert_eq!(handle.join().unwrap(), 2);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// ```compile_fail,E0373
/// # let pool = antiphon::pool::Pool::new(1)?;
/// let words = ["one", "two"];
/// let handle = pool.spawn(|| words.len());
/// assert_eq!(handle.join().unwrap(), 2);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// ```compile_fail,E0597
/// # let pool = antiphon::pool::Pool::new(1)?;
/// let words = ["one", "two"];
/// let said = &words;
/// let handle = pool.spawn(move || said.len());
/// assert_eq!(handle.join().unwrap(), 2);
/// # Ok::<(), std::io::Error>(())
/// ```
struct Handles;

/// A future that a pool polls must borrow nothing.
///
/// ```
/// # let pool = antiphon::pool::Pool::new(1)?;
/// let words = ["one", "two"];
/// let handle = pool.spawn_future(async move { words.len() });
/// assert_eq!(handle.join().unwrap(), 2);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// ```compile_fail,E0373
/// # let pool = antiphon::pool::Pool::new(1)?;
/// let words = ["one", "two"];
/// let handle = pool.spawn_future(async { words.len() });
/// assert_eq!(handle.join().unwrap(), 2);
/// # Ok::<(), std::io::Error>(())
/// ```
struct Futures;

/// The two closures of a join may run at the same time.
///
/// ```
/// let (mut one, mut other) = (0, 0);
/// antiphon::pool::join(|| one += 1, || other += 1);
/// assert_eq!((one, other), (1, 1));
/// ```
///
/// ```compile_fail,E0499
/// let (mut one, mut other) = (0, 0);
/// antiphon::pool::join(|| one += 1, || one += 1);
/// assert_eq!((one, other), (1, 1));
/// ```
struct Joins;

/// Asking for fibers is `unsafe`: the caller makes a promise.
///
/// ```
/// # use antiphon::{fiber, pool::Pool};
/// // SAFETY: no fiber waits while it makes a thread-local.
/// let pool = unsafe { Pool::builder().threads(1).fibers(fiber::STACK_BYTES) }.build()?;
/// let words = ["one", "two"];
/// pool.scope(|scope| scope.spawn(|| assert_eq!(words.len(), 2)));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// ```compile_fail,E0133
/// # use antiphon::{fiber, pool::Pool};
/// let pool = Pool::builder().threads(1).fibers(fiber::STACK_BYTES).build()?;
/// let words = ["one", "two"];
/// pool.scope(|scope| scope.spawn(|| assert_eq!(words.len(), 2)));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Scopes work the same with fibers: a task on its own stack may borrow no more than another.
///
/// ```compile_fail,E0597
/// # use antiphon::{fiber, pool::Pool};
/// // SAFETY: no fiber waits while it makes a thread-local.
/// let pool = unsafe { Pool::builder().threads(1).fibers(fiber::STACK_BYTES) }.build()?;
/// pool.scope(|scope| {
///     let words = ["one", "two"];
///     let said = &words;
///     scope.spawn(move || assert_eq!(said.len(), 2));
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
struct ScopesOfFibers;
