import { alertOperations } from "./alerts/alerts.ts";
import { auditOperations } from "./audit/audit-trail.ts";
import { channelOperations } from "./deliveries/channels.ts";
import { deliveryOperations } from "./deliveries/deliveries.ts";
import { keyOperations } from "./keys/keys.ts";
import { sessionOperations } from "./keys/sessions.ts";
import type { Operation } from "./operation.ts";
import { ruleOperations } from "./rules/rules.ts";
import { spikeOperations } from "./rules/spikes.ts";
import { showTrend } from "./rules/trends.ts";
import { searchEvents } from "./search/search-events.ts";
import { listJobs } from "./service/jobs.ts";
import { showPrivacy, showSettings } from "./service/settings.ts";
import { showStatus } from "./service/status.ts";
import { listZones } from "./service/zones.ts";
import { silenceOperations } from "./silences/silences.ts";
import { knownOperations } from "./sources/known-sources.ts";
import { viewOperations } from "./views/saved-views.ts";

/** Everything that a person or a program can ask or do. */
export const OPERATIONS = [
  showStatus,
  listZones,
  listJobs,
  showSettings,
  showPrivacy,
  searchEvents,
  ...ruleOperations,
  ...spikeOperations,
  showTrend,
  ...knownOperations,
  ...auditOperations,
  ...deliveryOperations,
  ...channelOperations,
  ...alertOperations,
  ...silenceOperations,
  ...keyOperations,
  ...sessionOperations,
  ...viewOperations,
] as const satisfies readonly Operation[];
