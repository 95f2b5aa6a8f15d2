import type { AlertMessage } from "#model/alert-message.ts";
import { defineAlertApi, toOpsgenieRequests } from "../opsgenie/opsgenie.ts";

/**
 * Returns the requests to the Integration Events API of Jira Service Management. The API takes Opsgenie's requests, except
 * the one that changes a priority: it creates, acknowledges and closes alerts and adds notes
 * (developer.atlassian.com/cloud/jira/service-desk-ops, "Integration events").
 */
export function toJiraRequests(message: AlertMessage) {
  return toOpsgenieRequests(message, { changesPriority: false });
}

export const jiraServiceManagement = defineAlertApi(
  "jira-service-management",
  "https://api.atlassian.com/jsm/ops/integration",
  toJiraRequests,
);
