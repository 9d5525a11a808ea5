import { Button, Group, Text } from '@mantine/core';
import { ExactTime } from '../../figures/figure';
import { useUrlState } from '../../url/url-state';

/** Says that the list has only keys that expire soon, or that nobody uses, as a link from the overview chose. */
export function DueFilter() {
  const [{ expires_before: before, unused_since: since }, setUrl] = useUrlState();
  const time = before ?? since;
  if (time === undefined) return null;
  return (
    <Group gap="xs" mb="sm">
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
  );
}
