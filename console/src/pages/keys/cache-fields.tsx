import { NumberInput, Select, Stack, Switch } from '@mantine/core';
import type { Key } from './key';

type Cache = Key['cache'];

const MAX_HOURS = 168;
const DEFAULT: NonNullable<Cache> = { ttl_seconds: 3_600, shared: 'key' };

/** Whether a key has a response cache, for how long it keeps responses, and who shares them. */
export function CacheFields({
  cache,
  mayShare,
  onChange,
  error,
}: {
  cache: Cache;
  /** Whether it may be shared with other keys of the team. */
  mayShare: boolean;
  onChange: (cache: Cache) => void;
  error: string | undefined;
}) {
  return (
    <Stack gap="xs">
      <Switch
        label="Response cache: exactly the same request gets the stored response"
        checked={cache !== null}
        onChange={(event) => onChange(event.currentTarget.checked ? DEFAULT : null)}
        error={cache === null ? error : undefined}
      />
      {cache !== null && (
        <>
          <NumberInput
            label="Hours for which a response is kept"
            min={0.01}
            max={MAX_HOURS}
            decimalScale={2}
            value={cache.ttl_seconds / 3_600}
            onChange={(hours) => onChange({ ...cache, ttl_seconds: Math.round(Number(hours) * 3_600) })}
            error={error}
          />
          {(mayShare || cache.shared === 'team') && (
            <Select
              label="Who gets a stored response"
              allowDeselect={false}
              data={[
                { value: 'key', label: 'This key only' },
                { value: 'team', label: 'Keys of the team with this setting' },
              ]}
              value={cache.shared}
              onChange={(shared) => onChange({ ...cache, shared: shared as NonNullable<Cache>['shared'] })}
            />
          )}
        </>
      )}
    </Stack>
  );
}
