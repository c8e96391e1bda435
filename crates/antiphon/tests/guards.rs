//! Which locks and guards are `Send` and `Sync`, checked by the compiler; and guards that own an
//! `Arc`.

use std::cell::Cell;
use std::rc::Rc;

use antiphon::{
    Condvar, Mutex, MutexGuard, RecursiveRwLock, ReentrantMutex, RwLock, RwLockReadGuard,
    RwLockWriteGuard, SpinMutex,
    guard::{
        MappedMutexGuard, MappedRwLockReadGuard, MappedRwLockWriteGuard, ReentrantMutexGuard,
        RwLockUpgradableReadGuard, SpinMutexGuard,
    },
};

/// Fails to compile unless the type has the traits.
macro_rules! is {
    ($type:ty: $($trait:ident),+) => {
        const _: fn() = || {
            fn needs<T: $($trait +)+ ?Sized>() {}
            needs::<$type>();
        };
    };
}

/// Fails to compile if the type has the trait: then `item` is ambiguous.
macro_rules! is_not {
    ($type:ty: $trait:ident) => {
        const _: fn() = || {
            trait Either<Which> {
                fn item() {}
            }
            impl<T: ?Sized> Either<()> for T {}
            impl<T: $trait + ?Sized> Either<u8> for T {}
            <$type as Either<_>>::item();
        };
    };
}

/// A type that is `Send`, but not `Sync`.
type Sent = Cell<u32>;
/// A type that is `Sync`, but not `Send`.
type Shared = std::sync::MutexGuard<'static, u32>;

is!(Mutex<Sent>: Send, Sync);
is!(SpinMutex<Sent>: Send, Sync);
is!(ReentrantMutex<Sent>: Send, Sync);
is!(RwLock<u32>: Send, Sync);
is!(RecursiveRwLock<u32>: Send, Sync);
is!(Condvar: Send, Sync);
is_not!(Mutex<Rc<u32>>: Sync);
is_not!(Mutex<Shared>: Sync);
// Readers share.
is!(RwLock<Sent>: Send);
is_not!(RwLock<Sent>: Sync);
is_not!(RwLock<Shared>: Sync);

// The holder of an exclusive guard may send it with the value; any thread may unlock the lock.
is!(MutexGuard<'static, Sent>: Send);
is!(SpinMutexGuard<'static, Sent>: Send);
is!(MappedMutexGuard<'static, Sent>: Send);
is!(RwLockWriteGuard<'static, u32>: Send, Sync);
is!(MappedRwLockWriteGuard<'static, u32>: Send, Sync);
is!(RwLockReadGuard<'static, u32>: Send, Sync);
is!(MappedRwLockReadGuard<'static, u32>: Send, Sync);
is!(RwLockUpgradableReadGuard<'static, u32>: Send, Sync);
is!(MutexGuard<'static, u32>: Sync);
is_not!(MutexGuard<'static, Sent>: Sync);
is_not!(MappedMutexGuard<'static, Sent>: Sync);
is_not!(MutexGuard<'static, Shared>: Send);
is_not!(RwLockWriteGuard<'static, Shared>: Send);
is_not!(RwLockReadGuard<'static, Sent>: Send);
is_not!(RwLockReadGuard<'static, Sent>: Sync);
is_not!(RwLockUpgradableReadGuard<'static, Sent>: Send);
// The reentrant mutex records its owner.
is_not!(ReentrantMutexGuard<'static, u32>: Send);
is!(ReentrantMutexGuard<'static, u32>: Sync);
is_not!(ReentrantMutexGuard<'static, Sent>: Sync);

/// All constructors are `const`, and locks store only their words and the value.
#[test]
fn constants_of_the_promised_size() {
    static REENTRANT: ReentrantMutex<Cell<u32>> = ReentrantMutex::new(Cell::new(1));
    static RECURSIVE: RecursiveRwLock<u64> = RecursiveRwLock::new(2);
    assert_eq!((REENTRANT.lock().get(), *RECURSIVE.read()), (1, 2));
    assert_eq!(size_of::<ReentrantMutex<()>>(), 24);
    assert_eq!(size_of::<RecursiveRwLock<u64>>(), 24);
    assert_eq!(size_of::<MutexGuard<'_, u64>>(), size_of::<usize>());
}

/// A reader can read again although a writer waits.
#[test]
fn a_recursive_reader_passes_a_writer() {
    let lock = RecursiveRwLock::new(());
    std::thread::scope(|scope| {
        let first = lock.read();
        let writer = scope.spawn(|| drop(lock.write()));
        // Until the writer waits as the head, any reader would be let in.
        std::thread::sleep(std::time::Duration::from_millis(20));
        let patience = std::time::Duration::from_secs(5);
        assert!(lock.try_read_for(patience).is_some());
        assert!(!writer.is_finished());
        drop(first);
    });
}

#[cfg(feature = "arc_lock")]
mod arc {
    use std::sync::Arc;

    use antiphon::guard::{
        ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard,
        ArcRwLockWriteGuard,
    };

    use super::*;

    is!(ArcMutexGuard<u32>: Send, Sync);
    is!(ArcRwLockReadGuard<u32>: Send, Sync);
    is!(ArcRwLockWriteGuard<u32>: Send, Sync);
    is!(ArcRwLockUpgradableReadGuard<u32>: Send, Sync);
    is_not!(ArcMutexGuard<Rc<u32>>: Send);
    is_not!(ArcReentrantMutexGuard<u32>: Send);

    #[test]
    fn guards_keep_their_lock_alive() {
        let mutex = Arc::new(Mutex::new(1));
        let weak = Arc::downgrade(&mutex);
        let mut guard = mutex.lock_arc();
        drop(mutex);
        *guard += 1;
        assert!(weak.upgrade().is_some_and(|mutex| mutex.is_locked()));
        std::thread::spawn(move || drop(guard)).join().expect("no panic");
        assert!(weak.upgrade().is_none());

        let lock = Arc::new(RwLock::new(1));
        let upgradable = lock.upgradable_read_arc();
        assert_eq!(*lock.read_arc(), *upgradable);
        let mut writer = ArcRwLockUpgradableReadGuard::upgrade(upgradable);
        *writer += 1;
        assert!(lock.try_read_arc().is_none());
        assert_eq!(*ArcRwLockWriteGuard::downgrade(writer), 2);
    }
}
