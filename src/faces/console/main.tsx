import { styleNonce } from "./page-security.ts";
import "./look/mantine.css";
import "./look/look.css";
import { MantineProvider } from "@mantine/core";
import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { createQueryClient } from "./api/query-client.ts";
import { App } from "./app.tsx";
import { theme } from "./look/theme.ts";
import { NowProvider } from "./state/now.tsx";

const root = document.getElementById("root");
if (root === null) throw new Error("the page has no element #root");

createRoot(root).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={() => styleNonce}>
      <QueryClientProvider client={createQueryClient()}>
        <NowProvider>
          <App />
        </NowProvider>
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
