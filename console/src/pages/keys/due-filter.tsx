import { Button, Group, Select, Text } from '@mantine/core';
import { ExactTime } from '../../figures/figure';
import { DAY_MS } from '../../url/calendar';
import { useUrlState } from '../../url/url-state';

/** Days from now until keys expire, or since they were used. */
const CHOICES = {
  'expires-7': { label: 'Expire within 7 days', days: 7 },
  'expires-30': { label: 'Expire within 30 days', days: 30 },
  'unused-30': { label: 'Unused for 30 days', days: -30 },
  'unused-90': { label: 'Unused for 90 days', days: -90 },
};
type Choice = keyof typeof CHOICES;

/** Leaves only active keys that expire soon, or that nobody uses; a link from the overview chooses it, too. */
export function DueFilter() {
  const [{ expires_before: before, unused_since: since }, setUrl] = useUrlState();
  const time = before ?? since;
  const choose = (choice: Choice) => {
    const { days } = CHOICES[choice];
    const at = new Date(Date.now() + days * DAY_MS).toISOString();
    setUrl({
      expires_before: days > 0 ? at : undefined,
      unused_since: days > 0 ? undefined : at,
      status: 'active',
    });
  };
  return (
    <>
      {time === undefined ? (
        <Select
          aria-label="Expiring or unused"
          placeholder="Expiring or unused"
          value={null}
          onChange={(choice) => choice !== null && choose(choice as Choice)}
          data={Object.entries(CHOICES).map(([value, { label }]) => ({ value, label }))}
          flex="1 1 180px"
          maw={200}
        />
      ) : (
        <Group gap="xs">
          <Text size="sm">
            {before === undefined ? 'Keys not used since ' : 'Keys that expire before '}
            <ExactTime at={time} />
          </Text>
          <Button
            size="compact-sm"
            variant="subtle"
            onClick={() => setUrl({ expires_before: undefined, unused_since: undefined })}
          >
            Show all
          </Button>
        </Group>
      )}
    </>
  );
}
