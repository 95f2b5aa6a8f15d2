import { z } from "zod";
import { sharedRequests } from "../opsgenie/schema.ts";

/** The Integration Events API: create, acknowledge, close, add a note, and nothing else. */
export const jiraRequests = z.array(z.union(sharedRequests)).min(1);
