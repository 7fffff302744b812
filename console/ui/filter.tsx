/** A filter that the address holds. */
import { useEffect, useState } from 'preact/hooks';
import { Text } from './forms.tsx';

interface FilterProps {
  label: string;
  /** As the address has it. */
  value: string;
  onValue(value: string): void;
  placeholder?: string;
}

/** The value has no spaces around it, but the field keeps them: more may be typed after one. */
export function Filter({ value, onValue, ...shown }: FilterProps) {
  const [text, setText] = useState(value);
  useEffect(() => {
    if (text.trim() !== value) setText(value);
  }, [value]);
  const type = (next: string) => {
    setText(next);
    if (next.trim() !== value) onValue(next.trim());
  };
  return <Text {...shown} type="search" value={text} onInput={type} />;
}
