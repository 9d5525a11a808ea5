import { Code, Stack, Text } from '@mantine/core';
import { ErrorCode } from '../../display/error-code';
import type { Call } from './call';
import { reasonsOf } from './reasons';

/** Why a call failed: what the gateway and the provider reported, in words where they are known. */
export function CallReasons({ call }: { call: Call }) {
  const reasons = reasonsOf(call);
  if (reasons.length === 0) return null;
  const isOfGateway = call.error_code !== null;
  return (
    <section aria-label="Why it failed">
      <Stack gap={6}>
        {reasons.map(({ token, words }, index) => (
          <Text key={token} size="sm" style={{ overflowWrap: 'anywhere' }}>
            {!isOfGateway && index === 0 && 'The provider reported '}
            {token === call.error_code ? <ErrorCode code={token} /> : <Code>{token}</Code>}
            {words === null ? '' : ` ${words}`}
          </Text>
        ))}
        {isOfGateway && (
          <Text size="xs" c="dimmed">
            Reported by the gateway. The link says what to do.
          </Text>
        )}
      </Stack>
    </section>
  );
}
