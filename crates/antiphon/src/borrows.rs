//! Programs that the compiler must refuse: a borrow that outlives its variable, by way of anything
//! here that runs or keeps values of others. For tests of documentation only.
//!
//! Each program that is refused stands below its twin, which differs in the place of a line or a
//! word and is accepted, and run: so it is refused for that difference, and not for a slip. The
//! codes are those that compilers give for it today; a stable one looks only whether there is an
//! error.

mod waits;

/// A task of a scope borrows what outlives the scope.
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
/// Nor is it enough that another task outlives it.
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

/// A scope is for its body and its tasks.
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
/// Nor can an outer scope be used instead: it may spawn no task that borrows from data inside the
/// inner one.
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

/// No other code uses a variable that a task writes to before the scope ends.
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

/// A task of a scope may run on another thread.
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

/// A handle may be dropped or forgotten, and its task goes on: so the task borrows nothing, and
/// returns no borrow.
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

/// A future that a pool drives borrows nothing.
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

/// The two closures of a join may run at once.
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

/// The caller that asks for fibers promises something.
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
/// Their scopes are no others: a task that has a stack of its own borrows no more.
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
