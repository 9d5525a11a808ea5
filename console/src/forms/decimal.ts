const THOUSANDS = /^[1-9]\d{0,2}(,\d{3})+(\.\d+)?$/;
const EUROPEAN = /^[1-9]\d{0,2}(\.\d{3})+,\d+$/;
const COMMA = /^\d*,\d+$/;

/**
 * An amount as the API takes it: "5,50" is 5.50, "1,250.5" and "1.250,5" are 1250.5, and "1,250" is 1250, as amounts are
 * shown here. Text that is no amount stays as it is, and the gateway rejects it.
 */
export function decimalOf(text: string): string {
  const plain = text.replace(/[\s_'$]/g, '');
  if (THOUSANDS.test(plain)) return plain.replaceAll(',', '');
  if (EUROPEAN.test(plain)) return plain.replaceAll('.', '').replace(',', '.');
  if (COMMA.test(plain)) return plain.replace(/^,/, '0,').replace(',', '.');
  return /^\d+(\.\d+)?$/.test(plain) ? plain : text;
}
