import { Kbd } from "@mantine/core";
import { MARKS, type Mark } from "#model/kinds.ts";
import { type AlertDetail, useAlertAct } from "../../api/alert.ts";
import { QuietButton } from "../../components/quiet-button.tsx";
import { ProblemBox } from "../../components/states.tsx";
import { usePageKeys } from "../../state/page-keys.ts";

/** The key of each mark is its number. */
const MARK_KEYS = MARKS.map((mark, index) => [String(index + 1), mark] as const);

/** Says what the alert was. A later mark replaces an earlier one. */
export function Marks({ alert: { id, mark } }: { readonly alert: AlertDetail }) {
  const send = useAlertAct(id);
  const say = (said: Mark) => send.mutate({ act: "mark", mark: said });
  usePageKeys(Object.fromEntries(MARK_KEYS.map(([key, said]) => [key, () => say(said)])));
  return (
    <>
      <div className="lw-bar" role="group" aria-label="What it was">
        {MARK_KEYS.map(([key, said]) => (
          <QuietButton
            key={said}
            isPressed={said === mark}
            loading={send.isPending && send.variables.mark === said}
            onClick={() => say(said)}
            word={
              <>
                {said.replace("-", " ")} <Kbd ml={4}>{key}</Kbd>
              </>
            }
          />
        ))}
      </div>
      <div className="lw-note">
        {mark === "attack"
          ? "The hours of an attack leave the history of the rule, so that the next one is not taken for usual."
          : "Noise is no attack, without a reason."}
      </div>
      <ProblemBox thrown={send.error} />
    </>
  );
}
