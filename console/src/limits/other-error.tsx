import { Text } from '@mantine/core';

/** What is wrong with a whole group of fields. @param find asked once the fields, which come before, show what they can */
export function OtherError({ find }: { find: () => string | undefined }) {
  const text = find();
  return (
    text !== undefined && (
      <Text size="xs" c="var(--mantine-color-error)" role="alert">
        {text}
      </Text>
    )
  );
}
