import { Group, Text } from '@mantine/core';

export function Logo() {
  return (
    <Group gap={8} wrap="nowrap">
      <img src="/console/favicon.svg" width={26} height={26} alt="" />
      <Text fw={700} fz="lg" component="span">
        Postern
      </Text>
    </Group>
  );
}
