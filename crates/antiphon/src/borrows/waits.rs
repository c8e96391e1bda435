//! Refused programs with channels, selects, promises and tokens.

/// A sent value may be a borrow, of a variable that outlives both ends of the channel.
///
/// ```
/// let word = String::from("one");
/// let (sender, receiver) = antiphon::channel::bounded(1);
/// sender.send(&word).unwrap();
/// assert_eq!(receiver.recv().unwrap(), "one");
/// ```
///
/// ```compile_fail,E0597
/// let (sender, receiver) = antiphon::channel::bounded(1);
/// {
///     let word = String::from("one");
///     sender.send(&word).unwrap();
/// }
/// assert_eq!(receiver.recv().unwrap(), "one");
/// ```
///
/// This also holds if no receiver takes the value: the remaining values are dropped with the
/// channel.
///
/// ```compile_fail,E0597
/// let (sender, receiver) = antiphon::channel::bounded(1);
/// let word = String::from("one");
/// sender.send(&word).unwrap();
/// ```
///
/// The value may go to another thread, so it must be `Send`.
///
/// ```compile_fail,E0277
/// let word = std::rc::Rc::new(String::from("one"));
/// let (sender, receiver) = antiphon::channel::bounded(1);
/// sender.send(word).unwrap();
/// ```
struct Channels;

/// An iterator over a receiver borrows the receiver.
///
/// ```
/// let (sender, receiver) = antiphon::channel::bounded(1);
/// sender.send(5).unwrap();
/// drop(sender);
/// let mut all = receiver.iter();
/// assert_eq!(all.next(), Some(5));
/// drop(receiver);
/// ```
///
/// ```compile_fail,E0505
/// let (sender, receiver) = antiphon::channel::bounded(1);
/// sender.send(5).unwrap();
/// drop(sender);
/// let mut all = receiver.iter();
/// drop(receiver);
/// assert_eq!(all.next(), Some(5));
/// ```
struct Iterators;

/// The sources of a select, and the variables that its closures borrow, must live until it ends.
///
/// ```
/// # use antiphon::{channel, select::Select};
/// let (sender, receiver) = channel::bounded(1);
/// sender.send(5).unwrap();
/// let mut had = Vec::new();
/// let select = Select::new().recv(&receiver, |number| had.push(number));
/// select.wait();
/// drop(receiver);
/// assert_eq!(had, [Ok(5)]);
/// ```
///
/// ```compile_fail,E0505
/// # use antiphon::{channel, select::Select};
/// let (sender, receiver) = channel::bounded(1);
/// sender.send(5).unwrap();
/// let mut had = Vec::new();
/// let select = Select::new().recv(&receiver, |number| had.push(number));
/// drop(receiver);
/// select.wait();
/// assert_eq!(had, [Ok(5)]);
/// ```
///
/// ```compile_fail,E0502
/// # use antiphon::{channel, select::Select};
/// let (sender, receiver) = channel::bounded(1);
/// sender.send(5).unwrap();
/// let mut had = Vec::new();
/// let select = Select::new().recv(&receiver, |number| had.push(number));
/// assert_eq!(had, [Ok(5)]);
/// select.wait();
/// ```
struct Selects;

/// No two closures of a select may use the same variable if one of them uses it mutably.
///
/// ```
/// # use antiphon::{Event, select::Select};
/// # let (one, other) = (Event::new(), Event::new());
/// # one.set();
/// let (mut ones, mut others) = (0, 0);
/// Select::new().event(&one, || ones += 1).event(&other, || others += 1).wait();
/// assert_eq!((ones, others), (1, 0));
/// ```
///
/// ```compile_fail,E0499
/// # use antiphon::{Event, select::Select};
/// # let (one, other) = (Event::new(), Event::new());
/// # one.set();
/// let (mut ones, mut others) = (0, 0);
/// Select::new().event(&one, || ones += 1).event(&other, || ones += 1).wait();
/// assert_eq!((ones, others), (1, 0));
/// ```
struct ClosuresOfASelect;

/// A value that a select may send can't be used otherwise until the select ends.
///
/// ```
/// # use antiphon::{channel, select::Select};
/// # let (sender, receiver) = channel::bounded(1);
/// let mut next = Some(5);
/// let select = Select::new().send(&sender, &mut next, |sent| sent.is_ok());
/// assert!(select.wait());
/// assert_eq!(next.take(), None);
/// ```
///
/// ```compile_fail,E0499
/// # use antiphon::{channel, select::Select};
/// # let (sender, receiver) = channel::bounded(1);
/// let mut next = Some(5);
/// let select = Select::new().send(&sender, &mut next, |sent| sent.is_ok());
/// assert_eq!(next.take(), None);
/// assert!(select.wait());
/// ```
struct WhatASelectSends;

/// A promise may be fulfilled at any time: so its value must borrow nothing.
///
/// ```
/// # use antiphon::promise;
/// let (promise, awaited) = promise::new();
/// {
///     let word = String::from("one");
///     promise.fulfil(word);
/// }
/// assert_eq!(awaited.wait().unwrap(), "one");
/// ```
///
/// ```compile_fail,E0597
/// # use antiphon::promise;
/// let (promise, awaited) = promise::new();
/// {
///     let word = String::from("one");
///     promise.fulfil(&word);
/// }
/// assert_eq!(awaited.wait().unwrap(), "one");
/// ```
struct Promises;

/// A child of a token is a token, and may outlive it; the token of a shielded section is only
/// borrowed.
///
/// ```
/// # use antiphon::cancel::Token;
/// let token = Token::new();
/// let child = token.child();
/// drop(token);
/// assert!(!child.is_cancelled());
/// let mut kept = None;
/// child.shielded(|inner| kept = Some(inner.clone()));
/// assert!(kept.is_some_and(|inner| !inner.is_cancelled()));
/// ```
///
/// ```compile_fail,E0521
/// # use antiphon::cancel::Token;
/// let child = Token::new().child();
/// let mut kept = None;
/// child.shielded(|inner| kept = Some(inner));
/// assert!(kept.is_some_and(|inner| !inner.is_cancelled()));
/// ```
struct Tokens;
