import { alertOperations } from "./alerts/alerts.ts";
import { auditOperations } from "./audit/audit-trail.ts";
import { channelOperations } from "./deliveries/channels.ts";
import { deliveryOperations } from "./deliveries/deliveries.ts";
import { keyOperations } from "./keys/keys.ts";
import { sessionOperations } from "./keys/sessions.ts";
import type { Operation } from "./operation.ts";
import { listZones } from "./service/zones.ts";
import { silenceOperations } from "./silences/silences.ts";
import { knownOperations } from "./sources/known-sources.ts";
import { viewOperations } from "./views/saved-views.ts";

/** Everything that a person or a program can ask or do. */
export const OPERATIONS = [
  listZones,
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
