import { describe, expect, test } from 'vitest';
import { foldCase, foldWords, spellings } from './folding.ts';

const folded = (name: string) => foldWords(name).map(({ whole }) => whole);

/** Spellings that are the same, by kind. */
const same: Record<string, string[][]> = {
  apostrophes: [
    [
      ...`'\u2018\u2019\u201b\u02bc\u02bb\u02b9\u02bd\u02be\u02bf\u02c8\u02ca\u02cb\u00b4\u0060\uff07\uff40\u2032\u2035\u05f3\u055a\u055b\ua78c\ua78b\u1fbd\u1fbf\u1fef\u1ffd\u1ffe\u0384\u07f4\u07f5\u0294\u275b\u275c`,
    ].map((mark) => `O${mark}Brien`),
    ['Марʼяна', "Мар'яна", 'Мар’яна', 'Мар´яна'],
    ['Hawaiʻi', "Hawai'i", 'Hawai‘i'],
    ['ז׳בוטינסקי', "ז'בוטינסקי", 'ז’בוטינסקי'],
    ['צה״ל', 'צה"ל', 'צה”ל'],
  ],
  hyphens: [
    [...'-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d\u058a\u05be\u1806\u30a0'].map(
      (mark) => `Mary${mark}Jane`,
    ),
    ['Mary\u00adJane', 'MaryJane'],
    ['علی\u200cرضا', 'علی-رضا'],
    ['Gal·la', 'Gaŀla', 'Gal.la'],
  ],
  'letters of Latin alphabets': [
    ['Kjær', 'kjaer', 'KJÆR'],
    ['Øystein', 'oystein'],
    ['Þór', 'thor', 'Thór'],
    ['Guðrún', 'gudrun', 'GUÐRÚN'],
    ['Œuvrard', 'oeuvrard'],
    ['Weiß', 'weiss', 'WEISS', 'WEIẞ'],
    ['Łukasz', 'lukasz', 'ŁUKASZ'],
    ['Đoković', 'dokovic'],
    ['Ħamrun', 'hamrun'],
    ['Kadın', 'kadin', 'KADIN', 'KADİN'],
    ['İzmir', 'izmir', 'IZMIR', 'ızmır'],
    ['Ŋalak', 'nalak'],
    ['Ŧuvla', 'tuvla'],
    ['Ɓala', 'bala', 'ɓala'],
    ['Ɗan', 'dan'],
    ['Ƙofa', 'kofa'],
    ['Ƴar', 'yar'],
    ['Əliyev', 'eliyev', 'əliyev'],
    ['Ɛkua', 'ekua', 'ɛkua'],
    ['Kɔfi', 'kofi', 'KƆFI'],
    ['Ǆamonja', 'dzamonja', 'ǆamonja', 'ǅamonja', 'Džamonja'],
    ['Ĳsbrand', 'ijsbrand', 'ĳsbrand'],
    ['ﬁnn', 'finn'],
    ['ſmith', 'smith'],
    ['Ｓｍｉｔｈ', 'smith'],
    ['Nguyễn', 'nguyen', 'NGUYÊ\u0303N'],
    ['Škvorecký', 'skvorecky'],
    ['Señor', 'senor', 'Sen\u0303or'],
    ['Åse', 'ase', 'A\u030ase'],
    ['Wanjikũ', 'wanjiku'],
    ['ŉamib', "'namib"],
  ],
  'Arabic, Persian, and Urdu keyboards': [
    ['علي', 'علی', 'على', 'علے'],
    ['كريم', 'کریم', 'ڪريم'],
    ['فاطمة', 'فاطمه', 'فاطمہ', 'فاطمۃ', 'فاطمە'],
    ['هبة', 'ھبۃ', 'ہبہ'],
    ['أحمد', 'احمد', 'إحمد', 'آحمد', 'ٱحمد'],
    ['مُحَمَّد', 'محمد', 'محـمد'],
    ['مؤمن', 'مومن'],
    ['رئيس', 'رييس', 'رئیس'],
    ['يحيى', 'یحیی', 'يحيي'],
    ['خان', 'خاں'],
    ['موسىٰ', 'موسی', 'موسی\u0670'],
    ['ﻋﻠﻲ', 'علي'],
    ['عبدﷲ', 'عبدالله'],
    ['مسئول', 'مسؤول', 'مسءول'],
    ['رؤوف', 'رءوف', 'رئوف'],
    ['شركة ١٢٣', 'شرکة ۱۲۳', 'شركه 123'],
  ],
  'Russian keyboards': [
    ['Нұрсұлтан', 'Нурсултан', 'НҰРСҰЛТАН'],
    ['Ғани', 'Гани'],
    ['Қанат', 'Канат', 'ҚАНАТ'],
    ['Өмірбек', 'Омирбек'],
    ['Ҳамид', 'Хамид'],
    ['Ґалаґан', 'Галаган'],
    ['Әлия', 'Алия'],
    ['Меңлі', 'Менли'],
    ['Үміт', 'Умит'],
    ['Баһар', 'Бахар'],
    ['Ҷамшед', 'Чамшед'],
    ['Євген', 'Евген'],
    ['Їжак', 'Ижак'],
    ['Јован', 'Иован', 'Йован'],
    ['Җәмилә', 'Жамила'],
    ['Ӯктам', 'Уктам'],
  ],
  'two encodings of a letter': [
    ['അവൺ', 'അവണ്\u200d', 'അവണ്'],
    ['സുരേഷൻ', 'സുരേഷന്\u200d', 'സുരേഷന്'],
    ['സുധീർ', 'സുധീര്\u200d'],
    ['ഗോപാൽ', 'ഗോപാല്\u200d'],
    ['അരുൾ', 'അരുള്\u200d'],
    ['വാൿ', 'വാക്\u200d'],
    ['എൻ്റ', 'എന്റ'],
    ['সৎ', 'সত্\u200d', 'সত্'],
    ['ヤマダ', 'やまだ', 'ﾔﾏﾀﾞ'],
    ['ヴァネッサ', 'ゔぁねっさ'],
  ],
  digits: [
    ['٠١٢٣٤٥٦٧٨٩', '۰۱۲۳۴۵۶۷۸۹', '0123456789', '०१२३४५६७८९', '০১২৩৪৫৬৭৮৯', '０１２３４５６７８９', '๐๑๒๓๔๕๖๗๘๙'],
    ['Bank 2²', 'bank 22'],
  ],
  'case and marks of other scripts': [
    ['ΟΔΥΣΣΕΥΣ', 'Οδυσσεύς', 'οδυσσευσ'],
    ['Ἀχιλλεύς', 'αχιλλευς'],
    ['Ёлкин', 'елкин', 'ЕЛКИН'],
    ['Андрій', 'АНДРІЙ'],
    ['შოთა', 'ᲨᲝᲗᲐ'],
    ['Արմեն', 'ԱՐՄԵՆ'],
    ['שָׁלוֹם', 'שלום'],
    ['ｶﾞﾘﾚｵ', 'ガリレオ'],
    ['김', '\u1100\u1175\u11b7'],
    ['ख़ान', 'खान', '\u0959ान'],
    ['क्\u200dष', 'क्ष'],
    ['葛\u{e0100}城', '葛城'],
    ['⑤', '5'],
  ],
};

describe.each(Object.entries(same))('%s', (_, rows) => {
  test.each(rows.map((row) => [row] as const))('%j are one name', (row) => {
    // contract: clients-22
    expect(new Set(row.map((name) => folded(name).join(' '))).size, row.map((name) => folded(name)).join(' | ')).toBe(
      1,
    );
    expect(folded(row[0] ?? '')).not.toEqual([]);
  });
});

test.each([
  ['ガ', 'カ'],
  ['राम', 'रमा'],
  ['क', 'के'],
  ['மணி', 'மண'],
  ['สม', 'สิม'],
  ['گل', 'كل'],
  ['چاي', 'جاي'],
  ['Иван', 'Ivan'],
  ['Шамиль', 'Самиль'],
  ['മണൽ', 'മണൻ'],
  ['はな', 'ばな'],
  ['王', '玉'],
  ['Ann', 'Anne'],
  ['سعد', 'شعد'],
  ['ט', 'ת'],
  ['დ', 'თ'],
])('%s and %s are two names', (one, other) => {
  expect(folded(one)).not.toEqual(folded(other));
});

test('a word with marks inside has parts; a name of marks only is a word', () => {
  expect(foldWords("Mary-Jane O'Brien, J.P.")).toEqual([
    { whole: 'maryjane', parts: ['mary', 'jane'] },
    { whole: 'obrien', parts: ['o', 'brien'] },
    { whole: 'jp', parts: ['j', 'p'] },
  ]);
  expect(['???', '😀 & Co', '\u0301', ' ', 'ـ'].map(folded)).toEqual([['???'], ['😀', 'co'], [], [], []]);
});

test.each([
  ['Müller', 'mueller'],
  ['GÖDEL', 'goedel'],
  ['Ka\u0308the', 'kaethe'],
  ['Århus', 'aarhus'],
  ['Øystein', 'oeystein'],
  ['Ŋalak', 'ngalak'],
  ['Đoković', 'djoković'],
])('%s is also spelled %s', (name, other) => {
  expect(spellings(name)).toContain(other);
});

test('for every character: case, composition, and compatibility make no difference', () => {
  const wrong: string[] = [];
  for (let code = 0x21; code < 0x1_ffff; code++) {
    if (code >= 0xd800 && code < 0xe000) continue;
    const character = String.fromCodePoint(code);
    const [lower, upper] = [character.toLowerCase(), character.toUpperCase()];
    const forms = new Set([character, lower, upper, character.normalize('NFD'), character.normalize('NFKC')]);
    if (forms.size === 1) continue;
    if (new Set([character, lower, upper].map(foldCase)).size > 1) wrong.push(`case of ${character}`);
    // Letters as modifiers stand for an apostrophe or an accent, which are no letters.
    if (/\p{Sk}/u.test(character)) continue;
    if (new Set([...forms].map((form) => folded(`a${form}b`).join(' '))).size > 1) wrong.push(character);
  }
  expect(wrong).toEqual([]);
}, 60_000);
