import type { Operation } from "./operation.ts";
import { listZones } from "./service/zones.ts";
import { silenceOperations } from "./silences/silences.ts";
import { knownOperations } from "./sources/known-sources.ts";

/** Everything that a person or a program can ask or do. */
export const OPERATIONS: readonly Operation[] = [listZones, ...knownOperations, ...silenceOperations];
