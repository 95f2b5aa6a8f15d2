import type { RuleFacts } from "../../api/rule.ts";
import { AdviceText } from "../../components/advice-text.tsx";
import { Ago } from "../../components/ago.tsx";
import { Panel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { Empty } from "../../components/states.tsx";

/** Every recommendation that was asked for, newest first, as plain text. The newest is open. */
export function AdviceHistory({ advice }: Pick<RuleFacts, "advice">) {
  return (
    <Panel title="Advice of the platform's AI" about="not verified, not applied" flush>
      {advice.length === 0 ? <Empty>No advice was asked for yet. A spike asks for it.</Empty> : null}
      {advice.map(({ askedAt, text, errorKey }, index) => (
        <details
          key={`${askedAt} ${index}`}
          className="lw-line"
          style={{ padding: "6px 12px" }}
          open={index === 0}
        >
          <summary>
            <Ago at={askedAt} />
            {text === null ? (
              <span className="lw-dim">
                {" "}
                · no advice: <Payload prose text={errorKey ?? "the platform gave none"} />
              </span>
            ) : null}
          </summary>
          {text === null ? null : <AdviceText text={text} />}
        </details>
      ))}
    </Panel>
  );
}
