import { countDays } from "./days.ts";
import { listCoverage } from "./hours.ts";
import { compareRules } from "./rule-counts.ts";
import { withdraw } from "./withdrawals.ts";

export const coverageOperations = [listCoverage, countDays, compareRules, withdraw] as const;
