import { alertOperations } from "./alerts/alerts.ts";
import { listArchiveDays, showArchiveStatus } from "./archive/archive-status.ts";
import { auditOperations } from "./audit/audit-trail.ts";
import { coverageOperations } from "./coverage/coverage.ts";
import { listGaps } from "./coverage/gaps.ts";
import { runOperations } from "./coverage/runs.ts";
import { channelOperations } from "./deliveries/channels.ts";
import { deliveryOperations } from "./deliveries/deliveries.ts";
import { showDigest } from "./digest/digest.ts";
import { listProposed, tryExclusion } from "./exclusions/try-exclusion.ts";
import { forwardOperations } from "./forwarding/forwarding.ts";
import { keyOperations } from "./keys/keys.ts";
import { sessionOperations } from "./keys/sessions.ts";
import type { Operation } from "./operation.ts";
import { quarantineOperations } from "./quarantine/quarantine.ts";
import { testRoutes } from "./routing/test-routes.ts";
import { showTrend } from "./rules/rule-replay.ts";
import { ruleOperations } from "./rules/rules.ts";
import { spikeOperations } from "./rules/spikes.ts";
import { listRevisions, searchEvents } from "./search/search-events.ts";
import { listJobs } from "./service/jobs.ts";
import { showOverview } from "./service/overview.ts";
import { showPrivacy, showSettings } from "./service/settings.ts";
import { showStatus } from "./service/status.ts";
import { listZones } from "./service/zones.ts";
import { silenceOperations } from "./silences/silences.ts";
import { knownOperations } from "./sources/known-sources.ts";
import { explainAlert } from "./verdicts/verdict.ts";
import { viewOperations } from "./views/saved-views.ts";

/** Everything that a person or a program can ask or do. */
export const OPERATIONS = [
  showStatus,
  showOverview,
  showDigest,
  listZones,
  listJobs,
  showSettings,
  showPrivacy,
  searchEvents,
  ...ruleOperations,
  ...spikeOperations,
  showTrend,
  ...knownOperations,
  tryExclusion,
  listProposed,
  ...auditOperations,
  ...deliveryOperations,
  ...channelOperations,
  ...alertOperations,
  explainAlert,
  ...silenceOperations,
  testRoutes,
  ...keyOperations,
  ...sessionOperations,
  ...viewOperations,
  ...coverageOperations,
  ...runOperations,
  listGaps,
  ...quarantineOperations,
  ...forwardOperations,
  listArchiveDays,
  showArchiveStatus,
  listRevisions,
] as const satisfies readonly Operation[];
