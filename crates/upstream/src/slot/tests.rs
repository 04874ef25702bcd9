use std::sync::Arc;
use std::time::Duration;

use ballast_balance::PickRequest;
use ballast_engine::{Backend, Generation, Process, Registry};
use ballast_model::{Address, Backend as BackendModel, Config, Server as ServerModel};
use ballast_worker::{TaskHandle, block_on, spawn_local, timeout, yield_now};

use super::*;

const PATIENCE: Duration = Duration::from_secs(10);

/// A backend of servers with these `maxconn`.
fn backend(limits: &[u32], change: impl FnOnce(&mut BackendModel)) -> Arc<Backend> {
    let registry = Registry::new(1, Arc::new(Process::new(1, 100)));
    let generation = Generation::compile(1, config(limits, change), &registry);
    Arc::clone(&generation.backends[0])
}

fn config(limits: &[u32], change: impl FnOnce(&mut BackendModel)) -> Arc<Config> {
    let mut model = BackendModel::default();
    model.common.name = "be".to_owned();
    for (index, limit) in limits.iter().enumerate() {
        let address = Address::Unix(format!("/nowhere/{index}"));
        let mut server = ServerModel::new(format!("s{index}"), address);
        server.id = u32::try_from(index).unwrap() + 1;
        server.connection_count_max = *limit;
        model.servers.push(Arc::new(server));
    }
    change(&mut model);
    Arc::new(Config {
        backends: vec![Arc::new(model)],
        ..Config::default()
    })
}

fn request(server: Option<usize>) -> SlotRequest<'static> {
    SlotRequest {
        server,
        server_is_required: false,
        priority: QueuePriority::default(),
        pick: PickRequest {
            avoid: &[],
            hash: None,
            random: 7,
        },
    }
}

fn pick(backend: &Arc<Backend>, request: SlotRequest<'static>) -> TaskHandle<Result<Slot, NoSlot>> {
    let backend = Arc::clone(backend);
    spawn_local(async move { Slot::take(&backend, &request, &mut QueuePositions::default()).await })
}

/// Runs all tasks until they wait.
async fn run_ready_tasks() {
    for _ in 0..8 {
        yield_now().await;
    }
}

async fn slot_of(task: TaskHandle<Result<Slot, NoSlot>>) -> Slot {
    let taken = timeout(PATIENCE, task.join()).await.unwrap();
    taken.unwrap().unwrap()
}

fn is_empty(backend: &Backend) -> bool {
    let state = &backend.state;
    let waiting = state.queues.lock().unwrap().is_empty();
    let queues = state.queue.current() + state.queued_count.current();
    waiting && queues == 0 && backend.servers.iter().all(|s| s.state.queue.current() == 0)
}

#[test]
fn places_go_to_those_who_wait_in_the_order_they_came() {
    block_on(async {
        let backend = backend(&[1], |_| {});
        let first = slot_of(pick(&backend, request(None))).await;
        let second = pick(&backend, request(None));
        run_ready_tasks().await;
        let third = pick(&backend, request(Some(0)));
        run_ready_tasks().await;
        let fourth = pick(&backend, request(None));
        run_ready_tasks().await;
        let queued = (
            backend.state.queue.current(),
            backend.servers[0].state.queue.current(),
        );
        assert_eq!(queued, (2, 1));
        drop(first);
        let second = slot_of(second).await;
        run_ready_tasks().await;
        assert!(!third.is_finished() && !fourth.is_finished());
        drop(second);
        let third = slot_of(third).await;
        run_ready_tasks().await;
        assert!(!fourth.is_finished());
        drop(third);
        drop(slot_of(fourth).await);
        assert!(is_empty(&backend));
        assert_eq!(backend.servers[0].state.sessions.current(), 0);
        assert_eq!(backend.state.served.current(), 0);
    })
    .unwrap();
}

/// What came last and matters most is served first, and its position tells that nobody was before it.
#[test]
fn places_go_by_class_and_by_moved_moment() {
    block_on(async {
        let backend = backend(&[1], |_| {});
        let first = slot_of(pick(&backend, request(None))).await;
        let of = |class: i64, offset_ms: i64, server| {
            let priority = QueuePriority::default();
            let request = SlotRequest {
                priority: priority.with_class(class).with_offset_ms(offset_ms),
                ..request(server)
            };
            let backend = Arc::clone(&backend);
            spawn_local(async move {
                let mut positions = QueuePositions::default();
                let slot = Slot::take(&backend, &request, &mut positions).await;
                (slot, positions.backend, positions.server)
            })
        };
        let mut queued = Vec::new();
        for (class, offset_ms, server) in [
            (1, -500_000, None),
            (0, 100_000, None),
            (0, 0, Some(0)),
            (0, -100_000, None),
            (-1, 500_000, Some(0)),
        ] {
            queued.push(of(class, offset_ms, server));
            run_ready_tasks().await;
        }
        drop(first);
        for (index, positions) in [
            (4, (0, 1)),
            (3, (1, 0)),
            (2, (0, 2)),
            (1, (2, 0)),
            (0, (3, 0)),
        ] {
            let (slot, in_backend, at_server) = timeout(PATIENCE, queued.remove(index).join())
                .await
                .unwrap()
                .unwrap();
            assert_eq!((in_backend, at_server), positions);
            run_ready_tasks().await;
            assert!(queued.iter().all(|task| !task.is_finished()));
            drop(slot.unwrap());
        }
        assert!(is_empty(&backend));
    })
    .unwrap();
}

#[test]
fn who_gives_up_is_passed_over() {
    block_on(async {
        let backend = backend(&[1], |_| {});
        let first = slot_of(pick(&backend, request(None))).await;
        let second = pick(&backend, request(None));
        run_ready_tasks().await;
        let third = pick(&backend, request(None));
        run_ready_tasks().await;
        second.abort();
        run_ready_tasks().await;
        assert_eq!(backend.state.queue.current(), 1);
        drop(first);
        drop(slot_of(third).await);
        assert!(is_empty(&backend));
        assert_eq!(backend.servers[0].state.sessions.current(), 0);
    })
    .unwrap();
}

#[test]
fn a_place_handed_to_one_who_left_goes_on() {
    block_on(async {
        let backend = backend(&[1], |_| {});
        let first = slot_of(pick(&backend, request(None))).await;
        let second = pick(&backend, request(None));
        run_ready_tasks().await;
        let third = pick(&backend, request(None));
        run_ready_tasks().await;
        // It was offered the slot, and ended before it could take it.
        drop(first);
        second.abort();
        drop(slot_of(third).await);
        assert!(is_empty(&backend));
        assert_eq!(backend.servers[0].state.sessions.current(), 0);
    })
    .unwrap();
}

#[test]
fn a_full_queue_sends_on_those_who_need_not_insist() {
    block_on(async {
        let backend = backend(&[1, 1], |model| {
            Arc::make_mut(&mut model.servers[0]).queue_count_max = 1;
        });
        let _first = slot_of(pick(&backend, request(Some(0)))).await;
        let queued = pick(&backend, request(Some(0)));
        run_ready_tasks().await;
        let other = slot_of(pick(&backend, request(Some(0)))).await;
        assert_eq!(other.server_index(), 1);
        let insisting = SlotRequest {
            server_is_required: true,
            ..request(Some(0))
        };
        let insisting = pick(&backend, insisting);
        run_ready_tasks().await;
        assert_eq!(backend.servers[0].state.queue.current(), 2);
        queued.abort();
        insisting.abort();
        run_ready_tasks().await;
        assert!(is_empty(&backend));
    })
    .unwrap();
}

#[test]
fn a_limit_that_grows_lets_the_next_in() {
    block_on(async {
        let backend = backend(&[1], |_| {});
        let _first = slot_of(pick(&backend, request(None))).await;
        let second = pick(&backend, request(None));
        run_ready_tasks().await;
        assert!(!second.is_finished());
        backend.servers[0].state.limit_connections(Some(2));
        let newcomer = pick(&backend, request(None));
        let _second = slot_of(second).await;
        run_ready_tasks().await;
        assert!(!newcomer.is_finished(), "who came last does not go first");
        backend.servers[0].state.limit_connections(Some(0));
        assert_eq!(offer_free_slots(&backend, 0), 1);
        drop(slot_of(newcomer).await);
    })
    .unwrap();
}

#[test]
fn who_waits_for_a_server_that_goes_down_chooses_again() {
    block_on(async {
        let backend = backend(&[1, 2], |_| {});
        let _first = slot_of(pick(&backend, request(Some(0)))).await;
        let waits = pick(&backend, request(Some(0)));
        run_ready_tasks().await;
        assert!(!waits.is_finished());
        backend.set_usability(0, false, false);
        assert_eq!(requeue_queue_of(&backend, Some(&backend.servers[0])), 1);
        assert_eq!(slot_of(waits).await.server_index(), 1);
        assert!(is_empty(&backend));
    })
    .unwrap();
}

#[test]
fn who_chooses_again_keeps_its_place() {
    block_on(async {
        let backend = backend(&[1, 1], |_| {});
        let _first = slot_of(pick(&backend, request(Some(0)))).await;
        let second = slot_of(pick(&backend, request(Some(1)))).await;
        let chooses_again = pick(&backend, request(Some(0)));
        run_ready_tasks().await;
        let came_later = pick(&backend, request(None));
        run_ready_tasks().await;
        backend.set_usability(0, false, false);
        assert_eq!(requeue_queue_of(&backend, Some(&backend.servers[0])), 1);
        run_ready_tasks().await;
        assert_eq!(backend.state.queue.current(), 2);
        drop(second);
        let chose_again = slot_of(chooses_again).await;
        run_ready_tasks().await;
        assert!(!came_later.is_finished());
        drop(chose_again);
        drop(slot_of(came_later).await);
        assert!(is_empty(&backend));
    })
    .unwrap();
}

#[test]
fn who_gives_up_counts_itself_among_those_who_left_the_queue() {
    block_on(async {
        let backend = backend(&[1], |_| {});
        let _first = slot_of(pick(&backend, request(None))).await;
        let mut positions = QueuePositions::default();
        let request = request(None);
        let waits = Slot::take(&backend, &request, &mut positions);
        timeout(Duration::from_millis(1), waits).await.unwrap_err();
        assert_eq!((positions.backend, positions.server), (1, 0));
    })
    .unwrap();
}

#[test]
fn without_a_usable_server_nobody_waits() {
    block_on(async {
        let backend = backend(&[1], |_| {});
        backend.set_usability(0, false, false);
        let refused = pick(&backend, request(None)).join().await.unwrap();
        assert_eq!(refused.unwrap_err(), NoSlot::NoServer);
    })
    .unwrap();
}

#[test]
fn a_server_that_drains_serves_its_own_alone() {
    block_on(async {
        let backend = backend(&[1, 1], |_| {});
        let first = slot_of(pick(&backend, request(Some(0)))).await;
        let second = slot_of(pick(&backend, request(Some(1)))).await;
        let any = pick(&backend, request(None));
        run_ready_tasks().await;
        let own = pick(&backend, request(Some(0)));
        run_ready_tasks().await;
        backend.set_usability(0, true, true);
        drop(first);
        assert_eq!(slot_of(own).await.server_index(), 0);
        run_ready_tasks().await;
        assert!(!any.is_finished());
        drop(second);
        assert_eq!(slot_of(any).await.server_index(), 1);
    })
    .unwrap();
}

#[test]
fn a_backup_serves_the_queue_only_when_it_must() {
    block_on(async {
        let backend = backend(&[1, 1], |model| {
            Arc::make_mut(&mut model.servers[1]).backup = true;
        });
        let first = slot_of(pick(&backend, request(None))).await;
        assert_eq!(first.server_index(), 0);
        let waits = pick(&backend, request(None));
        run_ready_tasks().await;
        assert!(!waits.is_finished());
        backend.set_usability(0, false, false);
        assert_eq!(offer_free_slots(&backend, 1), 1);
        assert_eq!(slot_of(waits).await.server_index(), 1);
    })
    .unwrap();
}

#[test]
fn who_waits_over_a_change_finds_the_servers_that_came() {
    block_on(async {
        let registry = Registry::new(1, Arc::new(Process::new(1, 100)));
        let was = Generation::compile(1, config(&[1], |_| {}), &registry);
        let backend = Arc::clone(&was.backends[0]);
        let first = slot_of(pick(&backend, request(None))).await;
        let waits = pick(&backend, request(None));
        let belongs = pick(&backend, request(Some(0)));
        run_ready_tasks().await;
        assert!(!waits.is_finished() && !belongs.is_finished());
        let is = Generation::compile_next(config(&[1, 1], |_| {}), &registry, &was);
        let changes = is.take_over(Some(&was), &registry);
        changes.backends.iter().for_each(|one| requeue_all(one));
        let second = slot_of(waits).await;
        assert_eq!(second.server().name(), "s1");
        assert!(Arc::ptr_eq(second.backend(), &is.backends[0]));
        run_ready_tasks().await;
        assert!(!belongs.is_finished(), "its server is full still");
        // A slot of the previous generation is given to an exchange that waits in this one.
        drop(first);
        assert_eq!(slot_of(belongs).await.server().name(), "s0");
        drop(second);
        assert!(is_empty(&is.backends[0]));
        assert_eq!(is.backends[0].state.served.current(), 0);
    })
    .unwrap();
}

#[test]
fn who_waits_over_changes_is_counted_once() {
    block_on(async {
        let registry = Registry::new(1, Arc::new(Process::new(1, 100)));
        let was = Generation::compile(1, config(&[1], |_| {}), &registry);
        let backend = Arc::clone(&was.backends[0]);
        let first = slot_of(pick(&backend, request(None))).await;
        let waits = spawn_local(async move {
            let mut positions = QueuePositions::default();
            let slot = Slot::take(&backend, &request(None), &mut positions).await;
            (slot.unwrap(), positions.backend)
        });
        run_ready_tasks().await;
        let mut former = was;
        for timeout_ms in [1, 2] {
            let change = |model: &mut BackendModel| {
                model.timeouts.tarpit = Some(Duration::from_millis(timeout_ms));
            };
            let next = Generation::compile_next(config(&[1], change), &registry, &former);
            let changes = next.take_over(Some(&former), &registry);
            changes.backends.iter().for_each(|one| requeue_all(one));
            run_ready_tasks().await;
            assert!(!waits.is_finished());
            former = next;
        }
        drop(first);
        let (_slot, position) = timeout(PATIENCE, waits.join()).await.unwrap().unwrap();
        assert_eq!(position, 1);
    })
    .unwrap();
}
