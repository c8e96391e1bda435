//! Programs that hand the CPU to each other: all players of a run are members of one domain.

use antiphon::coop::{Domain, DomainOptions, Group, WEIGHT};

use super::super::player::{Player, Seen};
use super::{Seat, cooperative};

/// Plays.
///
/// # Errors
///
/// One line: there is no domain to be had.
pub fn play(player: Player, seat: Seat) -> Result<Seen, String> {
    let cpus = antiphon_linux::allowed();
    let &cpu = cpus.first().ok_or("this program may run nowhere")?;
    // SAFETY: it asks the kernel for a number.
    let session = unsafe { libc::getsid(0) };
    let domain = Domain::open(&format!("bench-{session}"), DomainOptions::on(cpu))
        .map_err(|error| error.to_string())?;
    let group = if seat.one_group { Group::Number(1) } else { Group::Own };
    let mut member = domain.join(group, WEIGHT).map_err(|error| error.to_string())?;
    cooperative::play(player, seat, &mut member)
}
