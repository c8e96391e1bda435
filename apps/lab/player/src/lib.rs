//! An adaptive player of video, sound and the like: it shows on time what is due, and with less of
//! the CPU it drops the least important work first, without estimating the CPU it gets.
//!
//! A [`Player`] decodes the frames of a [`Clip`] by their [importance], drops those that were not
//! decoded in time, and shows the rest when they are due. [`Sound`] and [`Game`] are programs of
//! other kinds that share its scale of importance. All of them are plain state that runs on an
//! event loop ([`Hosted`]) through the small seam of [`program`]; here on a loop of virtual time:
//!
//! ```
//! use std::sync::Arc;
//!
//! use antiphon_player::decode::{Costs, Synthetic};
//! use antiphon_player::{Clip, Cpu, Headless, Layer, Options, Player, VirtualLoop, made};
//!
//! let clip = Arc::new(Clip::parse(made::layered(60, 60))?);
//! // The frames cost 12 ms each: three quarters of the time there is at 60 Hz, and of half of the
//! // CPU, one and a half times of it.
//! let cpu = Cpu::new(0, 50);
//! let clock = cpu.clone();
//! let decoder = Synthetic::new(Costs::by_size(&clip, 12_000_000)?, move |ns| clock.spend(ns));
//! let mut player = Player::new(clip, decoder, Headless, Options::default());
//! VirtualLoop::new(cpu).run(&mut [&mut player], u64::MAX);
//!
//! println!("{}", player.report());
//! assert_eq!(player.report().layer(Layer::Intra).dropped, 0);
//! assert!(player.report().layer(Layer::Disposable).dropped > 0);
//! # Ok::<(), antiphon_player::Error>(())
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`clip`] | an H.264 stream, parsed: layers, units, dependencies |
//! | [`importance`] | the scale that programs share |
//! | [`player`] | Priority-Progress |
//! | [`decode`] | decoders: OpenH264, and decoders that only spend time |
//! | [`sound`], [`game`] | programs that share the scale |
//! | [`conference`], [`echo`] | people with loudspeakers: capture, echo cancellation, mix |
//! | `steady` | a player that does not adapt |
//! | [`apart`] | pictures that another thread shows |
//! | [`program`] | the interface between a program and its loop |
//! | `hosted` | programs on a real event loop |
//! | `virtual_loop` | a loop of virtual time |
//! | [`stream`] | a server of a stored stream, and clients that play what they receive |
//! | [`window`] | a window of an X server, to show pictures in |
//! | [`counter`] | the frame's number, drawn in the frame |
//! | [`ffmpeg`] | clips to play: synthetic, or taken out of other files |
//! | [`made`] | streams of headers alone, for tests |
//! | `report` | the figures that a program reports |

pub mod apart;
pub mod clip;
pub mod conference;
pub mod counter;
pub mod decode;
pub mod echo;
mod error;
pub mod ffmpeg;
pub mod game;
mod hosted;
pub mod importance;
pub mod made;
mod picture;
pub mod player;
pub mod program;
mod report;
pub mod sound;
mod steady;
pub mod stream;
#[cfg(test)]
mod tests;
mod virtual_loop;
pub mod window;

pub use self::clip::{Clip, Layer};
pub use self::error::Error;
pub use self::game::Game;
pub use self::hosted::Hosted;
pub use self::importance::Scale;
pub use self::picture::{Headless, Kept, Picture, Screen};
pub use self::player::{Options, Player};
pub use self::report::{Count, Report, Tardiness, jain};
pub use self::sound::Sound;
pub use self::steady::Steady;
pub use self::virtual_loop::{Cpu, VirtualLoop};
