import { ATTACKS } from "./attacks.ts";
import { CRAWLERS } from "./crawlers.ts";
import { MISFIRES_OF_PEOPLE } from "./misfires-of-people.ts";
import { BROKEN_CLIENTS, MISFIRES_OF_PROGRAMS } from "./misfires-of-programs.ts";
import { SCANNERS } from "./scanners.ts";
import type { Situation } from "./situation.ts";
import { QUIET, WAVES } from "./waves.ts";

export const SITUATIONS: readonly Situation[] = [
  ...MISFIRES_OF_PEOPLE,
  ...MISFIRES_OF_PROGRAMS,
  ...BROKEN_CLIENTS,
  ...CRAWLERS,
  ...SCANNERS,
  ...ATTACKS,
  ...WAVES,
  ...QUIET,
];
