import './app/mantine.css';
import './main.css';
import { localStorageColorSchemeManager, MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { ApiError, whenSignedOut } from './api/client';
import { router } from './app/router';
import { sessionQuery } from './app/session';
import { cssVariablesResolver, theme } from './app/theme';

const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 10_000,
      // What the gateway rejected will be rejected again, and nobody waits three times for what hangs.
      retry: (failures, error) =>
        failures < 2 && (!(error instanceof ApiError) || error.code === 'unreachable' || error.status >= 502),
    },
  },
});
whenSignedOut(() =>
  queryClient.setQueryData(sessionQuery.queryKey, (state) => state && { ...state, session: null }),
);

const colorSchemeManager = localStorageColorSchemeManager({ key: 'postern-color-scheme' });
const container = document.getElementById('root');
if (container === null) throw new Error('The page has no element with the ID root.');
createRoot(container).render(
  <StrictMode>
    <MantineProvider
      theme={theme}
      cssVariablesResolver={cssVariablesResolver}
      colorSchemeManager={colorSchemeManager}
      defaultColorScheme="auto"
    >
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
