import { describe, expect, test } from 'vitest';
import { email, emailParameter } from './emails.ts';

const read = (value: string) => email.safeParse(value).data ?? email.safeParse(value).error?.issues[0]?.message;

describe('an address has one form', () => {
  test.each([
    // As typed, where all is ASCII.
    ['ada@example.com', 'ada@example.com'],
    ['Ada.L@Example.Com', 'Ada.L@Example.Com'],
    ["o'neil+tag@ex-ample.co.uk", "o'neil+tag@ex-ample.co.uk"],
    ['a!#$%&*/=?^_`{|}~b@x.io', 'a!#$%&*/=?^_`{|}~b@x.io'],
    ['a@ab--cd.de', 'a@ab--cd.de'],
    ['a@1und1.de', 'a@1und1.de'],
    // Trimmed.
    ['a@example.org ', 'a@example.org'],
    ['\ta@example.org\n', 'a@example.org'],
    ['\u00a0a@example.org\u3000', 'a@example.org'],
    ['\ufeffa@example.org\u2028', 'a@example.org'],
    // Domains, in both forms.
    ['info@münchen.example', 'info@xn--mnchen-3ya.example'],
    ['info@MÜNCHEN.Example', 'info@xn--mnchen-3ya.example'],
    ['info@mu\u0308nchen.example', 'info@xn--mnchen-3ya.example'],
    ['info@ｍünchen.example', 'info@xn--mnchen-3ya.example'],
    ['info@xn--mnchen-3ya.example', 'info@xn--mnchen-3ya.example'],
    ['info@XN--MNCHEN-3YA.example', 'info@xn--mnchen-3ya.example'],
    ['Info@xn--mnchen-3ya.Example', 'Info@xn--mnchen-3ya.example'],
    ['a@straße.de', 'a@xn--strae-oqa.de'],
    ['a@xn--strae-oqa.de', 'a@xn--strae-oqa.de'],
    ['a@пример.рф', 'a@xn--e1afmkfd.xn--p1ai'],
    ['a@ПРИМЕР.РФ', 'a@xn--e1afmkfd.xn--p1ai'],
    ['a@xn--e1afmkfd.xn--p1ai', 'a@xn--e1afmkfd.xn--p1ai'],
    ['a@例え.jp', 'a@xn--r8jz45g.jp'],
    ['a@例え。jp', 'a@xn--r8jz45g.jp'],
    ['a@例え．ｊｐ', 'a@xn--r8jz45g.jp'],
    ['a@カ・タ.jp', 'a@xn--lckxb3k.jp'],
    ['a@中国.中国', 'a@xn--fiqs8s.xn--fiqs8s'],
    ['a@가.kr', 'a@xn--o39a.kr'],
    ['a@भारत.भारत', 'a@xn--h2brj9c.xn--h2brj9c'],
    ['a@हिन्\u200dदी.भारत', 'a@xn--j2bd4cyah0f685s.xn--h2brj9c'],
    ['a@نامه\u200cای.com', 'a@xn--mgba3gch31f060k.com'],
    ['a@βόλος.com', 'a@xn--nxasmm1c.com'],
    ['a@ΒΌΛΟΣ.com', 'a@xn--nxasmq6b.com'],
    ['a@ישראל.co.il', 'a@xn--4dbrk0ce.co.il'],
    ['a@l·l.cat', 'a@xn--ll-0ea.cat'],
    ['a@mail.köln.example', 'a@mail.xn--kln-sna.example'],
    // Local parts beyond ASCII (RFC 6531), in NFC.
    ['jörg@example.com', 'jörg@example.com'],
    ['jo\u0308rg@example.com', 'jörg@example.com'],
    ['用户@例え.jp', '用户@xn--r8jz45g.jp'],
    ['почта@пример.рф', 'почта@xn--e1afmkfd.xn--p1ai'],
    ['उपयोगकर्ता@example.com', 'उपयोगकर्ता@example.com'],
    ['δοκιμή.x@example.com', 'δοκιμή.x@example.com'],
    ['محمد@example.com', 'محمد@example.com'],
    [`${'ü'.repeat(32)}@example.com`, `${'ü'.repeat(32)}@example.com`],
    [`${'a'.repeat(64)}@example.com`, `${'a'.repeat(64)}@example.com`],
  ])('%j is kept as %j', (given, kept) => {
    // contract: clients-8
    expect(read(given)).toBe(kept);
    expect(read(kept)).toBe(kept);
    expect(given.trim()).toMatch(new RegExp(String(email.meta()?.['pattern']), 'u'));
  });
});

describe('an address that is none is refused, and the part is named', () => {
  const before = 'before the @';
  const after = 'after the @';
  test.each([
    ['', 'must be an e-mail address'],
    ['ada', 'must be an e-mail address'],
    ['@example.com', 'must be an e-mail address'],
    ['ada@', 'must be an e-mail address'],
    ['a@b@example.com', 'must be an e-mail address'],
    [`${'a'.repeat(250)}@b.co`, 'at most 254'],
    ['.a@b.co', before],
    ['a.@b.co', before],
    ['a..b@b.co', before],
    ['a b@b.co', before],
    ['a(b)@c.de', before],
    ['"a b"@c.de', before],
    ['a,b@c.de', before],
    ['Ada <ada@c.de', before],
    ['a\nb@c.de', before],
    [`${'a'.repeat(65)}@b.co`, before],
    [`${'ü'.repeat(33)}@b.co`, before],
    ['a\u200bb@c.de', before],
    ['a\u00adb@c.de', before],
    ['a\u202eb@c.de', before],
    ['a\u00a0b@c.de', before],
    ['a\u3000b@c.de', before],
    ['a\u0085b@c.de', before],
    ['a\ufdd0@c.de', before],
    ['a\ud800@c.de', before],
    ['a@b', after],
    ['a@münchen', after],
    ['a@b_c.de', after],
    ['a@-b.de', after],
    ['a@b-.de', after],
    ['a@b..de', after],
    ['a@.b.de', after],
    ['a@b.de.', after],
    ['a@b.d', after],
    ['a@b.123', after],
    ['a@1.2.3.4', after],
    ['a@[1.2.3.4]', after],
    ['a@münchen.123', after],
    ['a@-münchen.de', after],
    ['a@münchen-.de', after],
    ['a@mün..chen.de', after],
    ['a@mün chen.de', after],
    ['a@mün/chen.de', after],
    ['a@mün%63hen.de', after],
    ['a@mün:80.de', after],
    ['a@xn--.de', after],
    ['a@xn--a.de', after],
    ['a@xn--abc-.de', after],
    ['a@xn--zzzzzz.de', after],
    ['a@xn--mnchen-3ya-.de', after],
    ['a@xn--münchen.de', after],
    ['a@i❤.ws', after],
    ['a@xn--i-7iq.ws', after],
    ['a@\u0301a.com', after],
    ['a@a\u200db.com', after],
    ['a@אa.com', after],
    ['a@٣a.com', after],
    ['a@a·b.cat', after],
    ['a@ᄀ.kr', after],
    [`a@${'ü'.repeat(60)}.de`, after],
    [`a@${'a'.repeat(64)}.de`, after],
  ])('%j: %s', (given, words) => {
    // contract: clients-8
    expect(email.safeParse(given).error?.issues.map(({ message }) => message)).toEqual([
      expect.stringContaining(words),
    ]);
  });
});

test.each([
  ['a b@example.org', 'a+b@example.org'],
  ['a  b@example.org', 'a++b@example.org'],
  ['a+b@example.org', 'a+b@example.org'],
  [' a@example.org ', 'a@example.org'],
  ['ü x@münchen.example', 'ü+x@xn--mnchen-3ya.example'],
])('in a parameter %j is %j: a blank inside was a plus', (given, kept) => {
  // contract: clients-19
  expect(emailParameter.parse(given)).toBe(kept);
});

test('the time for a text of 80 KB is linear', () => {
  for (const long of [
    'a'.repeat(80_000),
    'a.'.repeat(40_000),
    '@'.repeat(80_000),
    `a@${'ü.'.repeat(40_000)}de`,
    `a@${' '.repeat(80_000)}`,
  ])
    expect(email.safeParse(long).success).toBe(false);
});
