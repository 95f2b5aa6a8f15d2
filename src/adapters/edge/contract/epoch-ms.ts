import { z } from "zod";

/** The last millisecond a JavaScript Date can hold. */
export const LAST_DATE_MS = 8_640_000_000_000_000;

/** Unix time in milliseconds, UTC; only values that a Date can represent. */
export const EpochMs = z.int().min(0).max(LAST_DATE_MS);
