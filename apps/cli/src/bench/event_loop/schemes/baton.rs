//! Programs that know of each other: all players of a run are members of one domain.

use antiphon::coop::{BoostOptions, Booster, Domain, DomainOptions, Group, WEIGHT};

use super::super::player::{Player, Seen};
use super::{Seat, cooperative};

/// Plays, with the baton.
///
/// # Errors
///
/// One line: there is no domain to be had.
pub fn play(player: Player, seat: Seat) -> Result<Seen, String> {
    let member = domain()?.join(group(&seat), WEIGHT);
    cooperative::play(player, seat, &mut member.map_err(|error| error.to_string())?)
}

/// Plays, boosted; those of a group have its share by what they need.
///
/// # Errors
///
/// One line: it may not be boosted, or there is no domain to be had.
pub fn boosted(player: Player, seat: Seat) -> Result<Seen, String> {
    let booster = Booster::start(BoostOptions::default());
    let booster = booster.map_err(|refused| refused.to_string())?;
    let member = domain()?.weigh(group(&seat), WEIGHT);
    let member = member.map_err(|error| error.to_string())?;
    cooperative::play(player, seat, &mut booster.boost(member))
}

/// All players of a run have the same one.
fn domain() -> Result<Domain, String> {
    let cpus = antiphon_linux::allowed();
    let &cpu = cpus.first().ok_or("this program may run nowhere")?;
    let name = format!("bench-{}", std::os::unix::process::parent_id());
    Domain::open(&name, DomainOptions::on(cpu)).map_err(|error| error.to_string())
}

fn group(seat: &Seat) -> Group {
    if seat.one_group { Group::Number(1) } else { Group::Own }
}
