import { Button, useComputedColorScheme, useMantineColorScheme } from '@mantine/core';
import { MoonIcon, SunIcon } from '../display/icons';

export function ColorSchemeButton() {
  const { setColorScheme } = useMantineColorScheme();
  const dark = useComputedColorScheme('light') === 'dark';
  return (
    <Button
      variant="subtle"
      color="gray"
      c="dimmed"
      size="xs"
      justify="flex-start"
      leftSection={dark ? <SunIcon size={16} /> : <MoonIcon size={16} />}
      onClick={() => setColorScheme(dark ? 'light' : 'dark')}
    >
      {dark ? 'Light theme' : 'Dark theme'}
    </Button>
  );
}
