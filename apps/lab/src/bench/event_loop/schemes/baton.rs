//! Programs that know of each other: all players of a run on one CPU are members of a domain that
//! only they use.

use antiphon_coop::{BoostOptions, Booster, Domain, DomainOptions, Group, WEIGHT};

use super::super::player::{Player, Seen};
use super::{Seat, cooperative};
use crate::compete::tier_stats::TierStats;

/// Plays with the CPU token.
///
/// # Errors
///
/// One line, if no domain is available.
pub fn play(player: Player, seat: Seat) -> Result<Seen, String> {
    let member = domain(&seat)?.join(group(&seat), WEIGHT);
    let mut member = member.map_err(|error| error.to_string())?;
    let seen = cooperative::play(player, seat, &mut member)?;
    let tier_stats = member.status().as_ref().map(TierStats::of_member).unwrap_or_default();
    Ok(Seen { tier_stats, ..seen })
}

/// Plays with a boost. The players of a group get the group's share according to their needs.
///
/// # Errors
///
/// One line, if boosting is not permitted or no domain is available.
pub fn boosted(player: Player, seat: Seat) -> Result<Seen, String> {
    let options = BoostOptions { options: seat.schedule.0, ..BoostOptions::default() };
    let booster = Booster::start(options).map_err(|refused| refused.to_string())?;
    let member = domain(&seat)?.weigh(group(&seat), WEIGHT);
    let member = member.map_err(|error| error.to_string())?;
    let seen = cooperative::play(player, seat, &mut booster.boost(member))?;
    Ok(Seen { tier_stats: TierStats::of_booster(&booster), ..seen })
}

/// Returns the domain of the CPU on which this thread runs.
fn domain(seat: &Seat) -> Result<Domain, String> {
    let name = seat.domain.as_ref().ok_or("no domain was made")?;
    let cpus = antiphon_linux::allowed();
    let &cpu = cpus.first().ok_or("this program may run nowhere")?;
    Domain::open(name, DomainOptions { cpu, schedule: seat.schedule.0 })
        .map_err(|error| error.to_string())
}

fn group(seat: &Seat) -> Group {
    if seat.one_group { Group::Number(1) } else { Group::Own }
}
