import { Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { api, type ResponseOf } from '../../api/client';
import { providersQuery } from '../../api/load-all';
import { CopyableId, Snippet } from '../../display/copyable';
import { ErrorAlert } from '../../display/error-alert';
import { Facts } from '../../display/facts';
import { LoadingRows } from '../../display/loading';
import type { Team } from './team';

/**
 * The name to which Claude Code sends its calls: `anthropic`, also of a route, else that of a provider with Anthropic's price
 * list. If none has it, the gateway chooses the provider, as for all calls on /v1.
 */
function anthropicOf(names: readonly string[], all: ResponseOf<'/admin/v1/providers', 'get'>['data']) {
  if (names.includes('anthropic')) return 'anthropic';
  return all.find(({ name, catalog }) => catalog === 'anthropic' && names.includes(name))?.name;
}

/** What each computer needs, so that members sign in from Claude Code there. */
export function ClientSetup({ team: { sign_in: signIn, providers } }: { team: Team }) {
  const setup = useQuery({
    queryKey: ['client-setup'],
    queryFn: ({ signal }) => api.get('/admin/v1/sign-ins/setup', { signal }),
    staleTime: 60_000,
  });
  const providersOfAll = useQuery(providersQuery);
  const all = providersOfAll.data?.data;
  if (setup.data === undefined || all === undefined) {
    const error = setup.error ?? providersOfAll.error;
    return error === null ? <LoadingRows rows={3} /> : <ErrorAlert error={error} />;
  }
  const { enabled, gateway_url: url, certificate_sha256: sha256, certificate_error: problem } = setup.data;
  const names = signIn?.providers ?? providers ?? all.map(({ name }) => name);
  const provider = anthropicOf(names, all);
  const file = {
    forceLoginMethod: 'gateway',
    forceLoginGatewayUrl: provider === undefined ? url : `${url}/p/${provider}`,
  };
  return (
    <section aria-labelledby="client-setup">
      <Title order={3} size="h5" id="client-setup" mb="xs">
        Claude Code on each computer
      </Title>
      {!enabled || url === null ? (
        <Text size="sm">
          {enabled
            ? 'Set GATEWAY_URL to the address where clients call.'
            : 'Nobody can sign in from a client: set SIGN_IN=on and restart the gateway.'}
        </Text>
      ) : (
        <Stack gap="xs">
          <Text size="sm">Put this into its managed settings, by device management:</Text>
          <Snippet text={JSON.stringify(file, null, 2)} what="managed settings" />
          <Facts
            facts={[
              [
                'Certificate, SHA-256',
                sha256 !== null ? (
                  <CopyableId id={sha256} what="SHA-256 of the certificate" />
                ) : problem !== null ? (
                  `could not be verified: ${problem}`
                ) : (
                  'none: the address is plain HTTP'
                ),
              ],
            ]}
          />
        </Stack>
      )}
    </section>
  );
}
