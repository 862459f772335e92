//! A store that only records which experiments finished with which messages.

use std::sync::{Arc, Mutex};

use neph_model::{
    Campaign, CampaignId, CampaignStatus, ClassTransfer, Event, Experiment, ExperimentId,
    FleetMessage, FlowTrace, Message, Minute, PingBetween, Provenance, RecordError, Recorder,
    Sample, Scenario, Throughput, TracedRoute, Traceroute, Wall,
};
use neph_store::{
    FleetVisitor, IntakeResult, Journalled, MessageVisitor, Reduction, RouteVisitor, SentWithin,
    Store, StoreError,
};

#[derive(Debug, Default)]
pub struct RecordingStore {
    /// In the order in which they ended.
    pub finished: Vec<(Experiment, Vec<Message>)>,
    running: Arc<Mutex<Vec<Message>>>,
}

#[derive(Debug)]
struct MessageRecorder(ExperimentId, Arc<Mutex<Vec<Message>>>);

impl Recorder for MessageRecorder {
    fn experiment(&self) -> ExperimentId {
        self.0
    }
    fn messages(&mut self, messages: &[Message]) -> Result<(), RecordError> {
        self.1
            .lock()
            .expect("one thread")
            .extend_from_slice(messages);
        Ok(())
    }
    fn fleet(&mut self, _: &[FleetMessage]) -> Result<(), RecordError> {
        panic!("no such folder holds a fleet");
    }
    fn event(&mut self, _: &Event) -> Result<(), RecordError> {
        Ok(())
    }
    fn sample(&mut self, _: &Sample) -> Result<(), RecordError> {
        Ok(())
    }
}

impl Store for RecordingStore {
    fn handle(&self) -> Result<Box<dyn Store>, StoreError> {
        unreachable!("an import writes from one thread")
    }
    fn add_campaign(&mut self, _: &Campaign, scenarios: &[Scenario]) -> Result<(), StoreError> {
        let ids: std::collections::BTreeSet<_> = scenarios.iter().map(|s| s.id).collect();
        assert_eq!(ids.len(), scenarios.len(), "a scenario twice");
        Ok(())
    }
    fn remove_empty_campaign(&mut self, _: CampaignId) -> Result<bool, StoreError> {
        unreachable!("an import removes no campaign")
    }
    fn set_campaign_status(
        &mut self,
        _: CampaignId,
        _: CampaignStatus,
        _: Option<Wall>,
    ) -> Result<(), StoreError> {
        Ok(())
    }
    fn begin(&mut self, experiment: &Experiment) -> Result<Box<dyn Recorder>, StoreError> {
        self.running.lock().expect("one thread").clear();
        Ok(Box::new(MessageRecorder(
            experiment.id,
            Arc::clone(&self.running),
        )))
    }
    fn finish(
        &mut self,
        _: Box<dyn Recorder>,
        experiment: &Experiment,
        _: &Provenance,
    ) -> Result<(), StoreError> {
        let messages = std::mem::take(&mut *self.running.lock().expect("one thread"));
        self.finished.push((experiment.clone(), messages));
        Ok(())
    }
    fn take_in(&mut self, _: &Journalled<'_>) -> Result<IntakeResult, StoreError> {
        unreachable!("an import has no journals")
    }
    fn recover(&mut self) -> Result<Vec<Experiment>, StoreError> {
        Ok(Vec::new())
    }
    fn add_throughput(&mut self, _: CampaignId, _: &Throughput) -> Result<(), StoreError> {
        Ok(())
    }
    fn add_traceroute(&mut self, _: CampaignId, _: &Traceroute) -> Result<(), StoreError> {
        Ok(())
    }
    fn add_pings_between(&mut self, _: CampaignId, _: &[PingBetween]) -> Result<(), StoreError> {
        Ok(())
    }
    fn add_flow_trace(&mut self, _: ExperimentId, _: &FlowTrace) -> Result<(), StoreError> {
        Ok(())
    }
    fn add_traced_routes(&mut self, _: ExperimentId, _: &[TracedRoute]) -> Result<(), StoreError> {
        Ok(())
    }
    fn add_transfers(&mut self, _: ExperimentId, _: &[ClassTransfer]) -> Result<(), StoreError> {
        Ok(())
    }
    fn reduce(&mut self, _: ExperimentId, _: &[Minute], _: Wall) -> Result<(), StoreError> {
        unreachable!("an import reduces nothing")
    }
    fn remove_minutes(&mut self, _: ExperimentId, _: Wall) -> Result<(), StoreError> {
        unreachable!("an import reduces nothing")
    }
    fn reduction(&self, _: ExperimentId) -> Result<Option<Reduction>, StoreError> {
        Ok(None)
    }
    fn minutes(&self, _: ExperimentId) -> Result<Vec<Minute>, StoreError> {
        Ok(Vec::new())
    }
    fn is_being_written(&self) -> Result<bool, StoreError> {
        Ok(false)
    }
    fn campaigns(&self) -> Result<Vec<Campaign>, StoreError> {
        Ok(Vec::new())
    }
    fn scenarios(&self, _: CampaignId) -> Result<Vec<Scenario>, StoreError> {
        Ok(Vec::new())
    }
    fn experiments(&self, _: CampaignId) -> Result<Vec<Experiment>, StoreError> {
        Ok(Vec::new())
    }
    fn visit_messages(
        &self,
        _: ExperimentId,
        _: &mut MessageVisitor<'_>,
    ) -> Result<(), StoreError> {
        Ok(())
    }
    fn visit_fleet(
        &self,
        _: ExperimentId,
        _: SentWithin,
        _: &mut FleetVisitor<'_>,
    ) -> Result<(), StoreError> {
        Ok(())
    }
    fn flow_traces(&self, _: ExperimentId) -> Result<Vec<FlowTrace>, StoreError> {
        Ok(Vec::new())
    }
    fn visit_traced_routes(
        &self,
        _: ExperimentId,
        _: &mut RouteVisitor<'_>,
    ) -> Result<(), StoreError> {
        Ok(())
    }
    fn transfers(&self, _: ExperimentId) -> Result<Vec<ClassTransfer>, StoreError> {
        Ok(Vec::new())
    }
    fn events(&self, _: ExperimentId) -> Result<Vec<Event>, StoreError> {
        Ok(Vec::new())
    }
    fn samples(&self, _: ExperimentId) -> Result<Vec<Sample>, StoreError> {
        Ok(Vec::new())
    }
    fn provenance(&self, _: ExperimentId) -> Result<Option<Provenance>, StoreError> {
        Ok(None)
    }
    fn throughputs(&self, _: CampaignId) -> Result<Vec<Throughput>, StoreError> {
        Ok(Vec::new())
    }
    fn pings_between(&self, _: CampaignId) -> Result<Vec<PingBetween>, StoreError> {
        unreachable!("an import reads nothing")
    }
    fn traceroutes(&self, _: CampaignId) -> Result<Vec<Traceroute>, StoreError> {
        Ok(Vec::new())
    }
}
