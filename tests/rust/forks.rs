//! A forked child works on, whatever its parent's threads were doing at that moment.

#![cfg(unix)]
#![allow(unsafe_code)] // `fork` and `waitpid` are what this is about.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use turntrie::cuts::Weakness;
use turntrie::engine::Engine;

use crate::zoo;

#[test]
fn a_child_never_waits_for_a_lock_of_its_parent() {
    let engine = Engine::weakened(
        &zoo::named("byte-level").json,
        1 << 24,
        Weakness::None,
        Some(1),
    )
    .expect("an engine");
    let text: String = (0..60)
        .map(|i| format!("<|im_start|>user {i}<|im_end|>\n"))
        .collect();
    let want = engine.encode_full(&text).expect("ids");
    engine.encode(0, &text).expect("ids");
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        // Locks are held nearly all the time.
        for namespace in 1..3 {
            let (engine, text, stop) = (&engine, &text, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    engine.encode(namespace, text).expect("ids");
                    engine.drop_namespace(namespace);
                }
            });
        }
        for round in 0..40 {
            // SAFETY: the child only encodes, which takes no lock of the parent, and leaves by _exit.
            let child = unsafe { libc::fork() };
            if child == 0 {
                let ok = child_agrees(&engine, &text, &want);
                // SAFETY: ends the child without running the test harness's own exit.
                unsafe { libc::_exit(i32::from(!ok)) };
            }
            let status = wait(child);
            if status != Some(0) {
                stop.store(true, Ordering::Relaxed);
            }
            assert_eq!(
                status,
                Some(0),
                "round {round}: the child is stuck or disagrees"
            );
        }
        stop.store(true, Ordering::Relaxed);
    });
    // The parent's checkpoints are its own.
    assert!(engine.encode(0, &text).expect("ids").kept > 0);
}

/// The child starts without checkpoints, makes its own, and so does its child.
fn child_agrees(engine: &Engine, text: &str, want: &[u32]) -> bool {
    let ids = |kept: bool| {
        engine
            .encode(0, text)
            .is_ok_and(|e| e.ids == want && (e.kept > 0) == kept)
    };
    if !(ids(false) && ids(true)) {
        return false;
    }
    // SAFETY: as above; this process has one thread.
    let grandchild = unsafe { libc::fork() };
    if grandchild == 0 {
        let ok = ids(false) && ids(true);
        // SAFETY: as above.
        unsafe { libc::_exit(i32::from(!ok)) };
    }
    wait(grandchild) == Some(0)
}

/// The exit status of a child, or `None` if it does not end within ten seconds.
fn wait(child: libc::pid_t) -> Option<i32> {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(10) {
        let mut status = 0;
        // SAFETY: waits for a child of this process; `status` is valid for writing.
        if unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == child {
            return Some(status);
        }
        thread::sleep(Duration::from_millis(1));
    }
    // SAFETY: ends the child that this test started.
    unsafe { libc::kill(child, libc::SIGKILL) };
    None
}
