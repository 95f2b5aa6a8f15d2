import type { FastifyError, FastifyInstance } from "fastify";
import { addExportEventLogs } from "./export-event-logs.ts";
import { addListApiKeys } from "./list-api-keys.ts";
import { addListEventLogs } from "./list-event-logs.ts";
import { sendBareProblem } from "./platform-answer.ts";
import type { PlatformDeps } from "./platform-deps.ts";
import { ONLY_DOCUMENTED } from "./platform-schemas.ts";
import { addJsonParser } from "./read-json-body.ts";
import { addRecommendRule } from "./recommend-rule.ts";
import { addRuleMetrics } from "./rule-metrics.ts";
import { addSearchEventLogs } from "./search-event-logs.ts";

/** Adds the platform's operations at the platform's paths. Bodies are read by the platform's rules. */
export function addPlatform(app: FastifyInstance, deps: PlatformDeps): void {
  addListApiKeys(app, deps.db);
  void app.register(async (scope) => {
    addJsonParser(scope);
    scope.setValidatorCompiler(ONLY_DOCUMENTED.validatorCompiler);
    scope.setSerializerCompiler(ONLY_DOCUMENTED.serializerCompiler);
    scope.setErrorHandler<FastifyError>((error, _request, reply) => {
      // An invalid media type is refused like any other unknown one.
      if (error.statusCode === 415) return sendBareProblem(reply, 415);
      throw error;
    });
    addSearchEventLogs(scope, deps);
    addExportEventLogs(scope, deps);
    addListEventLogs(scope, deps);
    addRuleMetrics(scope, deps);
    addRecommendRule(scope, deps);
  });
}
