//! Stacks that the kernel refuses, and the kernel's figures for their memory.

use super::*;

#[test]
fn without_markers_there_is_an_end_of_mappings_that_says_what_to_do() {
    in_child(|| {
        let stacks = source(Guards::Shut);
        let fill = || {
            let mut taken = Vec::new();
            loop {
                match stacks.take() {
                    Ok(stack) => taken.push(stack),
                    Err(error) => return (taken, error),
                }
            }
        };
        let (mut taken, error) = fill();
        assert_eq!(error, NoStack::Mappings);
        assert!(error.to_string().contains("vm.max_map_count"));
        assert!(taken.len() > 1_000 && stacks.counts().made == taken.len());
        // Existing stacks still work.
        taken.truncate(1_000);
        assert_eq!(fill().1, NoStack::Mappings);
        write(bottom(&stacks.take().expect("one of those that are free")), 1);
        true
    });
}

#[test]
fn a_hundred_thousand_stacks_need_no_settings() {
    let markers = has_markers();
    in_child(|| {
        let stacks = source(Guards::Marked);
        let taken: Result<Vec<_>, _> = (0..100_000).map(|_| stacks.take()).collect();
        let Ok(taken) = taken else { return !markers };
        let last = &taken[99_999];
        write(bottom(last), 1);
        let guarded = taken.iter().all(|stack| stacks.guards(stack.limit().get()));
        guarded && !is_readable(last.limit().get()) && !is_readable(taken[50_000].limit().get())
    });
}

#[test]
fn little_address_space_is_used_up() {
    in_child(|| {
        let used = std::fs::read_to_string("/proc/self/statm").expect("procfs");
        let pages: u64 = used.split(' ').next().and_then(|word| word.parse().ok()).expect("a size");
        let most = pages * pages::size() as u64 + (4 << 20);
        let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
        // SAFETY: only reads the limit.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
        let stacks = source(Guards::Marked);
        let mut taken = Vec::with_capacity(100);
        let error = loop {
            match stacks.take() {
                Ok(stack) => taken.push(stack),
                Err(error) => break error,
            }
        };
        // A slab of 64 has no room, and the smaller slabs together fill the address space.
        assert_eq!(error, NoStack::Memory);
        assert!((40..64).contains(&taken.len()));
        assert!(taken.iter().all(|stack| stacks.guards(stack.limit().get())));
        taken.clear();
        stacks.take().is_ok()
    });
}

#[test]
fn locked_memory_is_guarded_all_the_same() {
    in_child(|| {
        let stacks = source(Guards::Marked);
        let first = stacks.take().expect("a stack");
        let second = first.limit().get() + stacks.0.shape.stride();
        // SAFETY: a page of the slab that has no owner yet. Few processes may lock more; some may
        // lock none.
        let locked = unsafe { libc::mlock(byte(second).cast(), pages::size()) } == 0;
        let next = stacks.take().expect("a stack");
        assert!(!locked || !has_markers() || !pages::mark(byte(second).cast(), pages::size()));
        !is_readable(second) && next.limit().get() == second && is_readable(bottom(&next))
    });
    in_child(|| {
        // SAFETY: takes only a number. Few processes may do this.
        let locked = unsafe { libc::mlockall(libc::MCL_FUTURE) } == 0;
        let stacks = source(Guards::Marked);
        let taken = take(&stacks, 3);
        // Only the pages of an opened stack are filled at once.
        let whole = taken[0].bytes().div_ceil(pages::size());
        let expected = if locked { whole } else { 0 };
        let (low, high) = ends(&taken[2]);
        let fresh = (low + stacks.0.shape.stride(), high + stacks.0.shape.stride() - 128);
        taken
            .iter()
            .all(|stack| resident(&ends(stack)) == expected && !is_readable(stack.limit().get()))
            && resident(&fresh) == 0
    });
}

#[test]
fn a_marker_that_is_none_is_seen_through() {
    let page = pages::size();
    let at = pages::reserve(page).expect("a page");
    assert!(pages::open(at, page) && !pages::is_guard(at, page));
    assert!(pages::mark(at, page) == has_markers() && pages::is_guard(at, page) == has_markers());
    assert!(pages::shut(at, page) && !is_readable(at.expose_provenance()));
    pages::unmap(at, page);
}

#[test]
fn no_huge_page_is_under_stacks() {
    // Kernels without huge pages have no such file.
    if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
        return;
    }
    let stack = source(Guards::Marked).take().expect("a stack");
    let maps = std::fs::read_to_string("/proc/self/smaps").expect("procfs");
    // A mapping is a line with its addresses, and others, of which the last is that of its flags.
    let range = |line: &str| {
        let (low, high) = line.split(' ').next()?.split_once('-')?;
        let ends = [low, high].map(|end| usize::from_str_radix(end, 16));
        Some(ends[0].clone().ok()?..ends[1].clone().ok()?)
    };
    let mut lines = maps.lines();
    let here = |line: &str| range(line).is_some_and(|range| range.contains(&bottom(&stack)));
    assert!(lines.any(here));
    let flags = lines.find_map(|line| line.strip_prefix("VmFlags:")).expect("flags");
    assert!(flags.split(' ').any(|flag| flag == "nh"), "{flags}");
}
