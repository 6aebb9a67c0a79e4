-- conditions without a list of three names or more: for such a list SQLite makes a table of its own whenever it checks the condition,
-- twice for each change of a row
DROP INDEX outbox_lane;
CREATE INDEX outbox_lane ON outbox (lane, id) WHERE (state = 'due' OR state = 'waiting' OR state = 'sending');
DROP INDEX outbox_unsent;
CREATE INDEX outbox_unsent ON outbox (delivery_guid) WHERE (state = 'due' OR state = 'waiting' OR state = 'sending');
DROP INDEX outbox_state;
CREATE INDEX outbox_state ON outbox (state, first_ms)
    WHERE (state = 'due' OR state = 'waiting' OR state = 'sending' OR state = 'dead');
DROP INDEX dispatch_going;
CREATE INDEX dispatch_going ON dispatch (created_ms) WHERE is_current = 1
    AND (state = 'queued' OR state = 'sent' OR state = 'acknowledged' OR state = 'running');
DROP INDEX dispatch_of_runner;
CREATE INDEX dispatch_of_runner ON dispatch (accelerator, runner) WHERE is_current = 1
    AND (state = 'queued' OR state = 'sent' OR state = 'acknowledged' OR state = 'running')
    AND event_type <> 'experiment';
-- with their last column, so that the first runs of an accelerator are counted without a look at their rows. Of two indices that
-- fit as well SQLite takes the later one
DROP INDEX dispatch_of_accelerator;
CREATE INDEX dispatch_of_accelerator ON dispatch (accelerator, created_ms, event_type);
DROP INDEX dispatch_expired;
CREATE INDEX dispatch_expired ON dispatch (accelerator, created_ms, event_type)
    WHERE state = 'expired';
