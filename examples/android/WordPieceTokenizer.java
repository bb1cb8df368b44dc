import java.text.Normalizer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The tokenizer of the encoders in edgeembed-runtime, "mini" and "nano": BERT's WordPiece, which removes case and
 * accents. It needs nothing but java.util, so it runs on Android and on any other Java.
 */
public final class WordPieceTokenizer {
    private static final int MAX_WORD_CHARACTERS = 100;
    private static final Pattern SPECIAL = Pattern.compile("\\[(?:PAD|UNK|CLS|SEP|MASK)\\]");

    private final Map<String, Integer> ids = new HashMap<>();
    private final int maxTokens;

    /**
     * @param vocabulary The tokens in the order of their ids: "model", "vocab" in the bundle's tokenizer.json.
     * @param maxTokens "max_seq_length" in the bundle's edgeembed.json.
     */
    public WordPieceTokenizer(List<String> vocabulary, int maxTokens) {
        for (String token : vocabulary) {
            ids.put(token, ids.size());
        }
        this.maxTokens = maxTokens;
    }

    /** Returns the model's "input_ids" for a text; its "attention_mask" has a 1 for each. */
    public long[] encode(String text) {
        List<Integer> tokens = new ArrayList<>();
        tokens.add(ids.get("[CLS]"));
        Matcher special = SPECIAL.matcher(text);
        int start = 0;
        while (special.find()) {
            addWords(text.substring(start, special.start()), tokens);
            tokens.add(ids.get(special.group()));
            start = special.end();
        }
        addWords(text.substring(start), tokens);
        int count = Math.min(tokens.size(), maxTokens - 1);
        long[] result = new long[count + 1];
        for (int i = 0; i < count; i++) {
            result[i] = tokens.get(i);
        }
        result[count] = ids.get("[SEP]");
        return result;
    }

    private void addWords(String text, List<Integer> tokens) {
        for (String word : normalize(text).split(" ")) {
            if (!word.isEmpty()) {
                addPieces(word, tokens);
            }
            if (tokens.size() >= maxTokens) {
                return;
            }
        }
    }

    /** Adds the longest tokens of a word from left to right, or [UNK] if a part of the word has no token. */
    private void addPieces(String word, List<Integer> tokens) {
        int[] characters = word.codePoints().toArray();
        List<Integer> pieces = new ArrayList<>();
        int start = 0;
        while (start < characters.length && characters.length <= MAX_WORD_CHARACTERS) {
            Integer piece = null;
            int end = characters.length;
            for (; end > start && piece == null; end--) {
                piece = ids.get((start > 0 ? "##" : "") + new String(characters, start, end - start));
            }
            if (piece == null) {
                break;
            }
            pieces.add(piece);
            start = end + 1;
        }
        if (start < characters.length) {
            tokens.add(ids.get("[UNK]"));
        } else {
            tokens.addAll(pieces);
        }
    }

    /** Returns the words of a text, in lower case, without accents, and separated by spaces. */
    static String normalize(String text) {
        StringBuilder clean = new StringBuilder(text.length());
        text.codePoints().forEach(c -> {
            if (isSpace(c)) {
                clean.append(' ');
            } else if (!isRemoved(c)) {
                appendWord(clean, c, isChinese(c));
            }
        });
        StringBuilder words = new StringBuilder(clean.length());
        Normalizer.normalize(clean, Normalizer.Form.NFD).codePoints().forEach(c -> {
            if (Character.getType(c) != Character.NON_SPACING_MARK) {
                appendWord(words, Character.toLowerCase(c), isPunctuation(c));
            }
        });
        return words.toString();
    }

    /** Appends a character, between spaces if it is a word of its own. */
    private static void appendWord(StringBuilder words, int c, boolean isAlone) {
        if (isAlone) {
            words.append(' ').appendCodePoint(c).append(' ');
        } else {
            words.appendCodePoint(c);
        }
    }

    private static boolean isSpace(int c) {
        return c == '\t' || c == '\n' || c == '\r' || Character.isSpaceChar(c);
    }

    private static boolean isRemoved(int c) {
        switch (Character.getType(c)) {
            case Character.CONTROL:
            case Character.FORMAT:
            case Character.PRIVATE_USE:
            case Character.SURROGATE:
                return true;
            default:
                return c == 0xFFFD;
        }
    }

    private static boolean isPunctuation(int c) {
        switch (Character.getType(c)) {
            case Character.CONNECTOR_PUNCTUATION:
            case Character.DASH_PUNCTUATION:
            case Character.START_PUNCTUATION:
            case Character.END_PUNCTUATION:
            case Character.INITIAL_QUOTE_PUNCTUATION:
            case Character.FINAL_QUOTE_PUNCTUATION:
            case Character.OTHER_PUNCTUATION:
                return true;
            default: // ASCII's symbols count as punctuation too
                return c < 128 && "$+<=>^`|~".indexOf(c) >= 0;
        }
    }

    private static boolean isChinese(int c) {
        return (c >= 0x4E00 && c <= 0x9FFF)
                || (c >= 0x3400 && c <= 0x4DBF)
                || (c >= 0xF900 && c <= 0xFAFF)
                || (c >= 0x20000 && c <= 0x2A6DF)
                || (c >= 0x2A700 && c <= 0x2B81F)
                || (c >= 0x2B920 && c <= 0x2CEAF)
                || (c >= 0x2F800 && c <= 0x2FA1F);
    }
}
