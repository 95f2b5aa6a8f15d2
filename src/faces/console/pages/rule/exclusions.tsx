import { Box } from "@mantine/core";
import { useOperation } from "../../api/ask.ts";
import type { RuleKey } from "../../api/rule.ts";
import { Moment } from "../../components/ago.tsx";
import { QueryPanel } from "../../components/panel.tsx";
import { Empty } from "../../components/states.tsx";
import { formatCount } from "../../look/words.ts";
import { Clause } from "../alert/exclusion.tsx";

/** The exclusions that were proposed for the rule. Those that were followed are watched. */
export function Exclusions({ zone, rule }: RuleKey) {
  const listed = useOperation("exclusion.list", { zone }, { staleTime: 60_000 });
  return (
    <QueryPanel title="Proposed exclusions" about="of this rule; Longwatch applies none" query={listed}>
      {({ items }) => {
        const own = items.filter(({ ruleIds }) => ruleIds.includes(rule));
        if (own.length === 0) return <Empty>No exclusion was proposed for this rule.</Empty>;
        return own.map(({ id, proposedAt, followedAt, today, isHidden, ...clause }) => (
          <Box key={id} px={12} pb={8}>
            <Clause zone={zone} clause={clause} isHidden={isHidden} />
            <div className="lw-note">
              {isHidden ? "An address is in it, which your key does not see. " : ""}
              <Moment say="proposed " at={proposedAt} />
              <Moment say=", quiet there since " at={followedAt} />
              {today === null
                ? ""
                : `, ${formatCount(today.events)} events there today, ${formatCount(today.suspicious)} suspicious`}
            </div>
          </Box>
        ));
      }}
    </QueryPanel>
  );
}
