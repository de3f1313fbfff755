use super::*;

const SECOND: Duration = Duration::from_secs(1);
const ME: u32 = 1;
const DIR: u32 = 1_000_000;
const OTHER: u32 = 1_000_001;

/// A detector that is asked as a share asks it.
struct Watch {
    detector: Detector<u32, u32, &'static str>,
    now: Now,
}

impl Watch {
    fn new() -> Self {
        let rule = Rule { files: 3, ..Rule::default() };
        Self { detector: Detector::default(), now: Now { at: Instant::now(), rule } }
    }

    /// Writes something that looks so, in the place of what was there.
    fn write(&mut self, file: u32, what: Look, before: Option<Look>) -> Option<Alarm<u32, &'static str>> {
        let first = self.detector.writes(ME, file, self.now)?;
        let before = first.emptied.or(before).map_or(Before::Nothing(DIR), Before::Held);
        (what == Look::Noise).then(|| self.detector.noise((ME, "zoe"), file, before, self.now)).flatten()
    }

    fn empty(&mut self, file: u32, held: Look) {
        self.detector.empties(ME, file, held, self.now);
    }

    fn remove(&mut self, held: Look) -> Option<Alarm<u32, &'static str>> {
        let heeds = self.detector.heeds_removals(ME, DIR, self.now);
        heeds.then(|| self.detector.removes(ME, DIR, held, self.now)).flatten()
    }

    fn rename(
        &mut self,
        file: u32,
        names: (&str, &str),
        replaced: Option<Look>,
    ) -> Option<Alarm<u32, &'static str>> {
        let names = (names.0.as_bytes(), names.1.as_bytes());
        self.detector.renames((ME, "zoe"), (file, DIR), names, replaced, self.now)
    }
}

#[test]
fn files_that_are_written_over_raise_one_alarm() {
    let mut watch = Watch::new();
    assert_eq!(watch.write(1, Look::Noise, Some(Look::Plain)), None);
    assert_eq!(watch.write(1, Look::Noise, Some(Look::Plain)), None, "the same file");
    assert_eq!(watch.write(2, Look::Noise, Some(Look::Known)), None);
    let alarm = watch.write(3, Look::Noise, Some(Look::Plain)).expect("an alarm");
    assert_eq!((alarm.number, alarm.client, alarm.who), (1, ME, Some("zoe")));
    assert_eq!(alarm.count, Count { overwritten: 3, ..Count::default() });
    assert_eq!(watch.write(4, Look::Noise, Some(Look::Plain)), None, "there is one already");
    assert_eq!(watch.detector.alarms(watch.now.at)[0].count.all(), 4);
}

#[test]
fn files_that_are_emptied_and_written_anew_count_by_what_they_held() {
    let mut watch = Watch::new();
    for (file, held) in [(1, Look::Plain), (2, Look::Noise), (3, Look::Known)] {
        watch.empty(file, held);
        assert_eq!(watch.write(file, Look::Noise, None), None);
    }
    watch.empty(4, Look::Plain);
    assert_eq!(watch.write(4, Look::Noise, None).unwrap().count.overwritten, 3);
}

#[test]
fn what_was_written_plainly_and_what_was_random_before_does_not_count() {
    let mut watch = Watch::new();
    for file in 0..100 {
        assert_eq!(watch.write(file, Look::Plain, Some(Look::Plain)), None);
        assert_eq!(watch.write(100 + file, Look::Known, Some(Look::Plain)), None);
        assert_eq!(watch.write(200 + file, Look::Noise, Some(Look::Noise)), None);
        assert_eq!(watch.write(300 + file, Look::Noise, None), None);
    }
    assert_eq!(watch.detector.alarms(watch.now.at), []);
}

#[test]
fn a_file_that_goes_counts_if_there_is_a_new_one_that_looks_random() {
    let mut watch = Watch::new();
    assert_eq!(watch.remove(Look::Plain), None);
    for file in 1..=3 {
        watch.write(file, Look::Noise, None);
    }
    assert_eq!(watch.remove(Look::Noise), None, "a backup removes its old files");
    assert!(!watch.detector.heeds_removals(ME, OTHER, watch.now), "elsewhere");
    assert_eq!(watch.detector.removes(ME, OTHER, Look::Plain, watch.now), None);
    assert_eq!(watch.remove(Look::Plain), None);
    assert_eq!(watch.rename(2, ("2.new", "2.docx"), Some(Look::Known)), None);
    assert_eq!(watch.remove(Look::Plain).unwrap().count.replaced, 3);
    assert!(!watch.detector.heeds_removals(ME, DIR, watch.now), "none is left");
}

#[test]
fn a_new_file_that_replaces_one_counts_once() {
    let mut watch = Watch::new();
    watch.write(1, Look::Noise, None);
    assert!(watch.detector.has_made(ME, 1, watch.now));
    watch.rename(1, ("a~", "a"), Some(Look::Plain));
    assert!(!watch.detector.has_made(ME, 1, watch.now));
    watch.rename(1, ("a", "b"), Some(Look::Plain));
    assert!(!watch.detector.heeds_removals(ME, DIR, watch.now));
}

#[test]
fn suffixes_count_together_with_what_is_in_the_files_but_each_file_once() {
    let mut watch = Watch::new();
    watch.rename(1, ("a.txt", "a.txt.locked"), None);
    watch.rename(2, ("b.jpg", "b.jpg.locked"), None);
    assert_eq!(watch.write(1, Look::Noise, Some(Look::Plain)), None);
    let alarm = watch.rename(3, ("c.doc", "c.doc.locked"), None).expect("an alarm");
    assert_eq!(alarm.count, Count { overwritten: 1, renamed: 2, replaced: 0 });
    assert_eq!(alarm.suffix.as_deref(), Some(&b"locked"[..]));
    watch.write(2, Look::Noise, Some(Look::Plain));
    assert_eq!(watch.detector.alarms(watch.now.at)[0].count.all(), 3);
}

#[test]
fn only_what_happens_within_the_time_counts() {
    let mut watch = Watch::new();
    for file in 0..100 {
        assert_eq!(watch.write(file, Look::Noise, Some(Look::Plain)), None, "file {file}");
        watch.now.at += SECOND * 30;
    }
    watch.write(1000, Look::Noise, None);
    watch.now.at += watch.now.rule.within;
    assert!(!watch.detector.heeds_removals(ME, DIR, watch.now));
}

#[test]
fn an_alarm_ends_by_command_and_an_hour_after_the_last_change() {
    let mut watch = Watch::new();
    for file in 0..3 {
        watch.write(file, Look::Noise, Some(Look::Plain));
    }
    assert_eq!((watch.detector.end(2), watch.detector.end(1), watch.detector.end(1)), (None, Some(ME), None));
    for file in 0..3 {
        watch.write(file, Look::Noise, Some(Look::Plain));
    }
    let last = watch.now.at;
    watch.now.at += QUIET / 2;
    watch.write(9, Look::Plain, None);
    assert_eq!(watch.detector.alarms(last + QUIET - SECOND)[0].number, 2);
    assert_eq!(watch.detector.alarms(last + QUIET), []);
}

#[test]
fn memory_is_bounded_and_alarms_are_kept() {
    let mut watch = Watch::new();
    for file in 0..3 {
        watch.write(file, Look::Noise, Some(Look::Plain));
    }
    for client in 2..5000 {
        watch.now.at += SECOND / 1000;
        for file in 0..2000 / client {
            watch.detector.writes(client, file, watch.now);
        }
        watch.detector.writes(client, 0, watch.now);
    }
    assert_eq!(watch.detector.clients.len(), CLIENTS_MAX);
    assert_eq!(watch.detector.alarms(watch.now.at).len(), 1);
}

#[test]
fn who_does_other_things_or_comes_later_is_not_suspected() {
    let mut watch = Watch::new();
    let now = watch.now;
    for file in 0..3 {
        watch.write(file, Look::Noise, Some(Look::Plain));
        watch.detector.renames((ME, "otto"), (100 + file, DIR), (b"a.txt", b"b.txt"), None, now);
        watch.detector.noise((ME, "otto"), 200 + file, Before::Held(Look::Noise), now);
    }
    watch.detector.noise((ME, "otto"), 300, Before::Held(Look::Plain), now);
    let alarms = watch.detector.alarms(now.at);
    assert_eq!((alarms[0].who, alarms[0].count.all()), (Some("zoe"), 4));
}
