import { useSettings } from "../../api/operations.ts";
import { Panel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { QueryView } from "../../components/states.tsx";
import classes from "./operations.module.css";

/** The configuration as it is in force. A secret is never in the answer. */
export function Settings() {
  const settings = useSettings();
  return (
    <QueryView query={settings} rows={10} asking="the configuration">
      {({ variables, channels, routing, detection }) => (
        <>
          <Panel title="Environment" about="of the process that answers; what is set stands first" flush>
            <table className="lw-table">
              <thead>
                <tr>
                  <th>variable</th>
                  <th>value</th>
                </tr>
              </thead>
              <tbody>
                {[...variables.filter(({ isSet }) => isSet), ...variables.filter(({ isSet }) => !isSet)].map(
                  ({ name, value, isSet }) => (
                    <tr key={name}>
                      <td className="lw-mono">{name}</td>
                      <td>
                        {value === "[secret]" ? (
                          <span aria-label="a secret">••••••••</span>
                        ) : (
                          <Payload text={value ?? ""} none="not set" />
                        )}
                        {isSet || value === null ? null : <span className="lw-dim"> default</span>}
                      </td>
                    </tr>
                  ),
                )}
              </tbody>
            </table>
          </Panel>
          <Panel
            title="Configuration file"
            about="channels by name and kind, routes and detection as they apply"
          >
            <div className="lw-columns">
              <Section title="channels" value={channels} />
              <Section title="routing" value={routing} />
              <Section title="detection" value={detection} />
            </div>
          </Panel>
        </>
      )}
    </QueryView>
  );
}

function Section({ title, value }: { readonly title: string; readonly value: unknown }) {
  const lines = JSON.stringify(value, null, 2).split("\n");
  return (
    <div>
      <h3 className={classes["section"]}>{title}</h3>
      <pre className={classes["json"]} tabIndex={0} aria-label={title}>
        {lines.map((line, index) => (
          <div key={`${index}`}>
            <Payload text={line} none="" />
          </div>
        ))}
      </pre>
    </div>
  );
}
