use super::*;

/// The steps of taking in; the other steps belong to an experiment that is recorded locally.
#[test]
fn an_import_of_journals_interrupted_at_any_step_is_repeated_without_duplicates() {
    for step in Step::ALL {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (campaign, scenario) = campaign();
        let mut experiment = samples::experiment();
        experiment.campaign = campaign.id;
        let mut journal =
            JournalRecorder::create(folder.path(), experiment.id).expect("a new journal");
        journal.messages(&recorded()).expect("recorded");
        journal.fleet(&fleet()).expect("recorded");
        journal.event(&event()).expect("recorded");
        journal.sample(&sample()).expect("recorded");
        experiment.status = ExperimentStatus::Complete;
        experiment.tally.messages = 33;
        experiment.tally.replies = 33;
        let facts = provenance(experiment.id);
        let journalled = Journalled {
            folder: folder.path(),
            experiment: &experiment,
            provenance: Some(&facts),
            events: &[],
            flow_trace: None,
        };
        let stored_path = folder.path().join("kept");
        let mut store = open(&stored_path);
        let added = store.add_campaign(&campaign, &[scenario]);
        added.expect("a new campaign");
        store.gate.stop_after(step);
        let result = store.take_in(&journalled);
        let is_stopped = matches!(result, Err(StoreError::Stopped));
        let take_in_steps = [
            Step::SegmentWritten,
            Step::SegmentNamed,
            Step::ColumnsWritten,
            Step::ColumnsNamed,
            Step::EndRecorded,
        ];
        assert_eq!(is_stopped, take_in_steps.contains(&step), "{step:?}");
        drop(store);

        let mut store = open(&stored_path);
        assert_eq!(store.recover().expect("nothing runs"), [], "{step:?}");
        store.take_in(&journalled).expect("now or before");
        assert_acknowledged_stored(&store, &experiment, true);
        store.take_in(&journalled).expect("before");
        assert_acknowledged_stored(&store, &experiment, true);
    }
}
