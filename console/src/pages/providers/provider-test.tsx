import { Alert } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { api } from '../../api/client';
import { ErrorAlert } from '../../display/error-alert';
import { CheckIcon, WarningIcon } from '../../display/icons';
import { duration } from '../../figures/numbers';
import type { Probe } from './provider';

export function useProviderTest() {
  return useMutation({
    mutationFn: (name: string) => api.post('/admin/v1/providers/{name}/test', { path: { name }, body: {} }),
  });
}

/** What a test request to a provider found, with the remedy. */
export function ProbeResult({
  name,
  probe,
  error,
}: {
  name: string;
  probe: Probe | undefined;
  error: unknown;
}) {
  if (probe === undefined) return <ErrorAlert error={error} />;
  const { ok, message, status, duration_ms } = probe;
  return (
    <Alert
      role="status"
      variant="outline"
      color={ok ? 'teal' : 'red'}
      icon={ok ? <CheckIcon /> : <WarningIcon />}
      title={ok ? `${name} works` : `${name} does not work`}
      styles={{ title: { color: ok ? 'var(--postern-good)' : 'var(--postern-bad)' } }}
    >
      {message} {status === null ? '' : `Status ${status}, `}
      {duration(duration_ms)}.
    </Alert>
  );
}
