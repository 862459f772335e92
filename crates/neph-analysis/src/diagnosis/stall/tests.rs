//! What is a stall, and what only looks like one.

use super::*;

/// A task every 10 ms for 2 s; `done` says when it is done.
fn tasks_every_10_ms(done: impl Fn(f64) -> Option<f64>) -> Vec<Task> {
    (0..200_u32)
        .map(|number| {
            let due = 10.0 * f64::from(number);
            Task {
                seq: Seq(number.into()),
                requested: due,
                due,
                done: done(due),
            }
        })
        .collect()
}

#[test]
fn tasks_done_together_after_a_silence_show_a_stall() {
    // Nothing is done from 405 to 805 ms; each takes 0.02 ms afterwards.
    let tasks = tasks_every_10_ms(|due| {
        let is_in = (405.0..805.0).contains(&due);
        Some(if is_in { 805.0 + due / 5e3 } else { due + 0.1 })
    });
    let stalls = stalls(&tasks, &[]);
    assert_eq!(stalls.len(), 1, "{stalls:?}");
    let stall = &stalls[0];
    assert!((stall.from - 400.1).abs() < 0.01 && (stall.until - 805.0).abs() < 0.2);
    assert_eq!(stall.waited.len(), 40);
    let slope = slope(&tasks, &stalls).expect("points");
    assert!((slope + 1.0).abs() < 0.001, "{slope}");
}

#[test]
fn a_stall_from_the_first_message_on_is_detected() {
    let tasks = tasks_every_10_ms(|due| Some(due.max(450.0) + 0.1));
    let stalls = stalls(&tasks, &[]);
    assert_eq!(stalls.len(), 1, "{stalls:?}");
    assert_eq!(stalls[0].waited.len(), 46);
}

#[test]
fn a_queue_that_fills_and_drains_is_no_stall() {
    // It grows by half a millisecond a millisecond, holds, and drains at the link's rate: what comes
    // last leaves together, but never after a silence.
    for peak in [50.0, 200.0, 400.0] {
        let tasks = tasks_every_10_ms(|due| {
            let grown = (due - 300.0).clamp(0.0, 2.0 * peak) / 2.0;
            let drained = (due - 1200.0).max(0.0);
            Some(due + 0.1 + (grown - drained).max(0.0))
        });
        assert_eq!(stalls(&tasks, &[]), [], "{peak}");
    }
}

#[test]
fn a_longer_path_or_single_late_tasks_are_no_stall() {
    let tasks = tasks_every_10_ms(|due| {
        let is_longer = (500.0..900.0).contains(&due);
        let is_late = (due / 170.0).fract() < 0.01;
        Some(due + if is_longer { 60.0 } else { 1.0 } + if is_late { 25.0 } else { 0.0 })
    });
    assert_eq!(stalls(&tasks, &[]), []);
}

#[test]
fn activity_during_the_silence_rules_out_a_stall() {
    let tasks = tasks_every_10_ms(|due| {
        let is_in = (405.0..805.0).contains(&due);
        Some(if is_in { 805.0 } else { due })
    });
    let busy: Vec<f64> = (40..81).map(|ten| f64::from(ten) * 10.0 + 5.0).collect();
    assert_eq!(stalls(&tasks, &busy), []);
}

#[test]
fn a_cpu_quota_shows_as_stalls() {
    // 10 ms of work in each 100 ms, and each task takes 0.8 ms.
    let (mut free_at, mut done_times) = (0.0_f64, Vec::new());
    for number in 0..200_u32 {
        let due = 10.0 * f64::from(number);
        free_at = free_at.max(due) + 0.8;
        if free_at % 100.0 > 10.0 {
            free_at = (free_at / 100.0).ceil() * 100.0 + 0.8;
        }
        done_times.push(free_at);
    }
    let mut done = done_times.into_iter();
    let mut tasks = tasks_every_10_ms(|_| None);
    for task in &mut tasks {
        task.done = done.next();
    }
    let stalls = stalls(&tasks, &[]);
    assert!(stalls.len() >= 18, "{stalls:?}");
}

#[test]
fn tasks_held_back_by_the_window_belong_to_the_stall() {
    // Ten leave in a silence of 400 ms, then the window is full until its end.
    let mut tasks = tasks_every_10_ms(|due| {
        let is_in = (405.0..805.0).contains(&due);
        Some(if is_in { 805.0 } else { due + 0.1 })
    });
    for task in &mut tasks {
        if (505.0..805.0).contains(&task.due) {
            task.due = 805.5;
            task.done = Some(806.0);
        }
    }
    let stalls = stalls(&tasks, &[]);
    assert_eq!(stalls.len(), 1, "{stalls:?}");
    assert_eq!(
        (stalls[0].waited.len(), stalls[0].held_back.len()),
        (10, 30)
    );
}

#[test]
fn a_window_that_opens_once_a_round_trip_is_no_stall() {
    // One message a millisecond, ten of them a round trip of 100 ms: the rest waits for the window.
    let tasks: Vec<Task> = (0..200_u32)
        .map(|number| {
            let (requested, turn) = (f64::from(number), f64::from(number / 10));
            let due = requested.max(turn * 100.0) + 100.0;
            let late = f64::from(number % 10) / 50.0;
            Task {
                seq: Seq(number.into()),
                requested: requested + 100.0,
                due,
                done: Some(due + late + 0.05),
            }
        })
        .collect();
    assert_eq!(stalls(&tasks, &[]), []);
}

/// Everything waits 70 ms from 300 ms on, and what is due from 500 to 700 ms comes at 770 ms, as it
/// waits behind a connection that is opened: 770 ms is when it was due on that path.
#[test]
fn tasks_that_wait_no_longer_in_a_silence_show_no_stall() {
    let tasks = tasks_every_10_ms(|due| match due {
        _ if due < 300.0 => Some(due + 0.1),
        _ if (640.0..700.0).contains(&due) => Some(770.0),
        _ => Some(due + 70.0),
    });
    assert_eq!(stalls(&tasks, &[]), []);
}

/// The same silence: once everything goes on waiting behind it, once nothing does.
#[test]
fn a_silence_followed_by_a_standing_queue_is_no_stall() {
    let tasks_behind_queue = |queue: f64| {
        tasks_every_10_ms(|due| {
            Some(match due {
                _ if due < 405.0 => due + 0.1,
                _ if due < 805.0 => 805.0 + due / 5e3,
                _ => due + queue,
            })
        })
    };
    assert_eq!(stalls(&tasks_behind_queue(300.0), &[]), []);
    assert_eq!(stalls(&tasks_behind_queue(1.0), &[]).len(), 1);
}
