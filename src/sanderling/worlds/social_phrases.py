"""What people write in a simulated market: sentences by mood and language. Invented, all of them.

`{brand}` and the other words in braces are filled in by `social_texts`. A sentence has the mood that it is listed
under, for whoever reads it; nothing here was written with a particular reader in mind.
"""

from collections.abc import Mapping
from types import MappingProxyType

from sanderling.worlds.social_truth import Intent, Mood, Sentiment

VIETNAMESE, ENGLISH = "vi", "en"

WORDS: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        VIETNAMESE: {
            "part": ("pin", "màn hình", "phần mềm", "bộ sạc", "nước sơn", "âm thanh", "thiết kế", "khung máy"),
            "thing": ("xe", "máy", "đồng hồ", "tai nghe", "loa"),
            "days": ("2", "3", "5", "10", "20", "45"),
            "few": ("hai", "ba", "bốn", "năm"),
            "place": ("quận 5", "thị trấn", "bến xe cũ", "khu chợ nổi", "phố cổ", "ngoại ô"),
            "month": ("tháng ba", "tháng sáu", "tháng chín", "cuối năm"),
            "million": ("3", "7", "12", "25"),
        },
        ENGLISH: {
            "part": ("battery", "screen", "software", "charger", "paint", "sound", "design", "frame"),
            "thing": ("scooter", "phone", "watch", "headset", "speaker"),
            "days": ("two", "three", "five", "ten", "twenty", "forty"),
            "few": ("two", "three", "four", "five"),
            "place": ("the old town", "the harbour", "our village", "the station", "the suburbs"),
            "month": ("March", "June", "September", "next year"),
            "million": ("3", "7", "12", "25"),
        },
    }
)

# By mood and language, one sentence a line.
SENTENCES: Mapping[Mood, Mapping[str, str]] = MappingProxyType(
    {
        Mood(Intent.DISCUSSION, Sentiment.POSITIVE): {
            VIETNAMESE: """
Dùng {brand} được {days} ngày rồi, {part} rất ổn, mình rất hài lòng
{thing} của {brand} chạy êm, {part} đẹp, mua về không hối tiếc
Càng dùng càng thích {brand}, nhất là {part}
Mẫu mới của {brand} đẹp xuất sắc, {part} làm rất tinh tế
Cả nhà mình đều thích {thing} {brand}, dùng tiện lắm
{part} của {brand} lần này cải thiện rõ rệt, rất đáng khen
Nhân viên {brand} nhiệt tình, giải thích kỹ, cảm ơn nhiều
Đi {days} ngày đường dài với {brand} mà vẫn thoải mái, tuyệt vời
Giá hợp lý mà {part} tốt hơn mình mong đợi
Mình chấm {brand} mười điểm, {part} khỏi phải bàn""",
            ENGLISH: """
{days} weeks with the {brand} and I love the {part}
The {part} on this {thing} is excellent, {brand} did a great job
Honestly the best {thing} I have owned, well done {brand}
{brand} surprised me, it is comfortable, quiet and easy to live with
My whole family enjoys the {brand}, the {part} feels premium
Great value, and the {part} is even nicer than I hoped
Friendly people at {brand}, quick answers, very happy with it
The new {brand} looks gorgeous and runs smoothly""",
        },
        Mood(Intent.DISCUSSION, Sentiment.NEUTRAL): {
            VIETNAMESE: """
Hôm nay mình mở hộp {thing} {brand} bản mới
Mọi người nghĩ sao về {part} của {brand}
So sánh {part} giữa {brand} bản cũ và bản mới
{brand} vừa công bố {thing} mới, bán từ {month}
Mình quay video này ở {place}, {thing} là của {brand}
Có ai xài {brand} rồi chưa, kể mình nghe với
Bản này của {brand} có {few} màu, mình chọn màu xám
Phần hai mình sẽ nói về {part} của {brand}
Tuần này {brand} tổ chức một buổi gặp gỡ ở {place}""",
            ENGLISH: """
Unboxing the new {thing} from {brand} today
What do you think about the {part} of the {brand}?
{brand} announced a new {thing}, on sale from {month}
Comparing the {part} of last year's {brand} with this one
I filmed this near {place} with a {brand}
Part two will be about the {part} of the {brand}
This {brand} comes in {few} colours, mine is grey
Has anyone used the {brand} around {place}?""",
        },
        Mood(Intent.DISCUSSION, Sentiment.NEGATIVE): {
            VIETNAMESE: """
Theo mình thì {brand} bản mới xấu hơn bản cũ, nhìn chán
{part} của {brand} so với đối thủ thì yếu, mình không thích
Thiết kế lần này của {brand} nhàm chán, thua xa đời trước
Mình thấy {brand} càng ngày càng đi xuống, buồn thật
Đẹp thì có đẹp nhưng {part} của {brand} quá yếu
Xem xong video về {brand} mà thấy nản, {part} quá dở
Giá {brand} quá đắt so với những gì nhận được""",
            ENGLISH: """
In my opinion the new {brand} is ugly and boring
The {part} of the {brand} is weak compared to the others
I think {brand} is getting worse every year, sad to see
Not a fan of the {brand}, the {part} feels cheap and slow
The {brand} looks fine but the {part} is bad
Too expensive for what it is, and the {part} is mediocre""",
        },
        Mood(Intent.LEAD, Sentiment.NEUTRAL): {
            VIETNAMESE: """
{thing} {brand} này giá bao nhiêu vậy shop
Cho mình xin giá bản mới của {brand} với ạ
Mình muốn mua một chiếc {brand}, mua ở đâu gần {place}
{brand} còn hàng màu đen không shop ơi
{brand} có trả góp không ạ, mình ở {place}
Tư vấn giúp mình chọn {thing} {brand} tầm {million} triệu""",
            ENGLISH: """
How much is the {brand} with the bigger {part}?
Where can I buy this {thing} near {place}?
I want to buy one, do you ship to {place}?
Is the {brand} still available in black?
Any discount on the {brand} this month?
I need to order {few} of these {brand}, what is the price?""",
        },
        Mood(Intent.LEAD, Sentiment.POSITIVE): {
            VIETNAMESE: """
Đẹp quá, {brand} này giá bao nhiêu vậy ạ
Nhìn mê thật sự, cho mình xin link mua {brand}
{part} xịn quá, mình muốn đặt một chiếc {brand}""",
            ENGLISH: """
This looks amazing, how much is the {brand}?
Love the {part}, where can I order one?
What a beautiful {thing}, I want to buy one""",
        },
        Mood(Intent.SUPPORT, Sentiment.NEUTRAL): {
            VIETNAMESE: """
Làm sao để kết nối {thing} {brand} với điện thoại vậy mọi người
Cho hỏi cách cập nhật phần mềm cho {brand}
Mình quên mật khẩu tài khoản {brand}, lấy lại ở đâu
Trung tâm bảo hành {brand} ở {place} nằm chỗ nào ạ
Hướng dẫn mình cách thay {part} của {brand} với
{brand} của mình chưa kích hoạt được, cần hỗ trợ""",
            ENGLISH: """
How do I connect the {brand} to my phone?
Can someone help me reset the {part} of my {brand}?
What is the warranty period of the {brand}?
How to update the software on this {thing}?
I forgot my password for the {brand} app, how do I reset it?
Where is my order, it was placed {days} days ago""",
        },
        Mood(Intent.COMPLAINT, Sentiment.NEGATIVE): {
            VIETNAMESE: """
Mới mua {brand} được {days} ngày mà {part} đã hỏng, quá thất vọng
Gọi tổng đài {brand} {few} lần không ai nghe máy, bực mình
{thing} {brand} bị lỗi hoài, mang đi sửa {few} lần rồi vẫn vậy
Giao hàng chậm {days} ngày, hộp thì móp, dịch vụ {brand} quá tệ
Mình yêu cầu hoàn tiền mà {brand} không chịu giải quyết
Nhân viên {brand} thái độ khó chịu, mình sẽ không quay lại
{part} không giống quảng cáo, phí tiền mua {brand}
Đừng mua {brand}, {part} tệ lắm mọi người ơi""",
            ENGLISH: """
My {brand} broke after {days} days, very disappointed
Terrible service from {brand}, nobody answered my calls
The {part} stopped working and {brand} refused to help
I want a refund, this {thing} is a waste of money
It arrived late and the {part} was scratched, awful
Do not buy the {brand}, the {part} is horrible
Rude staff at {brand}, the worst experience I had this year""",
        },
        Mood(Intent.CRISIS, Sentiment.NEGATIVE): {
            VIETNAMESE: """
{thing} {brand} bốc cháy ngay giữa {place}, kinh khủng
Pin {brand} phát nổ lúc đang sạc, có người bị thương nặng
Kêu gọi tẩy chay {brand} vì lừa đảo khách hàng
{brand} làm lộ thông tin khách hàng, công an đang điều tra
{brand} phải thu hồi toàn bộ {thing} vì lỗi nghiêm trọng
Vụ tai nạn do {thing} {brand} gây ra, gia đình sẽ khởi kiện
Bóc phốt {brand} bán hàng kém chất lượng, lừa đảo trắng trợn""",
            ENGLISH: """
The battery of a {brand} exploded while charging, people are scared
A {brand} {thing} caught fire near {place}, terrible
Boycott {brand}, they lied about the {part} for years
{brand} data breach, customer data leaked, this is a disaster
Urgent recall of the {brand}, the {part} is dangerous
Police are investigating {brand} for fraud
Class action lawsuit against {brand} after the awful accident""",
        },
        Mood(Intent.SEEDING, Sentiment.NEUTRAL): {
            VIETNAMESE: """
Ai cần {thing} {brand} thì inbox em báo giá nha
Link mua {brand} ở bio, chốt đơn ngay kẻo hết
Bấm vào giỏ hàng màu vàng góc trái để lấy mã giảm giá {brand}
Em hay mua bên shop này nè, {brand} đủ mẫu, nhắn zalo tư vấn
Tuyển cộng tác viên bán {brand}, hoa hồng cao""",
            ENGLISH: """
Link in my bio for the {brand}, limited slots left
Use my code TEN for the {brand} at checkout
DM me to order the {brand}, grab yours now
Tap the link in the description, sponsored post for {brand}
Join my team and sell {brand} with me""",
        },
        Mood(Intent.SPAM, Sentiment.NEUTRAL): {
            VIETNAMESE: """
Vay tiền nhanh trong ngày, bao nợ xấu, gọi {phone}
Bán sim số đẹp giá rẻ, liên hệ {phone}
Việc nhẹ lương cao, làm online tại nhà, zalo {phone}
Tăng follow giá rẻ uy tín, nhắn {phone}
Kiếm tiền online tại nhà mỗi ngày, xem {link}""",
            ENGLISH: """
Earn money from home, message {phone}
Buy real followers at {link}
Instant loans no credit check, call {phone}
Double your crypto today, whatsapp me on {phone}
You have won a prize, claim your gift card at {link}""",
        },
    }
)

# What is written below, by how it is meant. None of it asks, offers or complains of anything: a comment has no say in
# what a post is for.
REMARKS: Mapping[Sentiment, Mapping[str, str]] = MappingProxyType(
    {
        Sentiment.POSITIVE: {
            VIETNAMESE: """
đẹp quá trời luôn, xem hoài không chán
xịn thật sự, mình cũng đang dùng bản này
hay quá, cảm ơn bạn đã chia sẻ
mình dùng cả năm nay vẫn rất tốt
công nhận mượt và êm hơn bản trước nhiều
màu này hợp gu mình, nhìn sang
video rất có tâm, xem rất thích""",
            ENGLISH: """
this is so beautiful, I could watch it all day
mine is a year old and still works great
thank you, really helpful video
smooth and quiet, exactly my experience
lovely colour, it looks fantastic in the sun
great video, I enjoyed every minute""",
        },
        Sentiment.NEUTRAL: {
            VIETNAMESE: """
xem lúc {few} giờ sáng
mình ở {place}, hôm qua cũng thấy một chiếc ngoài đường
phần sau khi nào có vậy bạn
bạn quay video này bằng gì thế
ai ở {place} điểm danh
lần đầu mình xem kênh này
mình mới biết hãng này hôm nay
nhạc nền tên gì vậy""",
            ENGLISH: """
watching this at {few} in the morning
I live near {place} and saw one yesterday
when is the next part coming
what camera did you film this with
first time on this channel
never heard of this name before today
what is the song in the background""",
        },
        Sentiment.NEGATIVE: {
            VIETNAMESE: """
chán thật sự, nghe mà buồn
nhìn xấu quá, không hiểu nổi
thua xa mấy hãng khác
thế này thì tệ quá
dở thật, xem mà nản
kém quá vậy trời""",
            ENGLISH: """
this is really sad to see
it looks ugly and cheap
so much worse than the others
bad, just bad
I hate how this turned out
what a mess, unbelievable""",
        },
    }
)

EMOJI: Mapping[Sentiment, tuple[str, ...]] = MappingProxyType(
    {
        Sentiment.POSITIVE: ("😍", "❤️", "👍", "🔥", "🥰", "😍😍"),
        Sentiment.NEUTRAL: ("👀", "📦", "🎥", "🤔"),
        Sentiment.NEGATIVE: ("😡", "👎", "😤", "😞", "😡😡"),
    }
)
TAGS = ("review", "xuhuong", "fyp", "unboxing", "congnghe", "trainghiem", "vlog", "daily")

# Short forms, as people type them.
SLANG: Mapping[str, str] = MappingProxyType(
    {
        "không": "ko",
        "được": "đc",
        "mọi người": "mn",
        "biết": "bik",
        "rồi": "r",
        "luôn": "lun",
        "thích": "thik",
        "nhiều": "nhìu",
        "quá": "wá",
        "với": "vs",
        "vậy": "z",
        "mình": "mik",
        "nhân viên": "nv",
        "gì": "j",
    }
)
